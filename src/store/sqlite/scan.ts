import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { toReadError } from './errors.ts'

/** How long one slice may hold the event loop, in ms. Asking for the time costs more than a row, so a few share one look. */
const SLICE_MS = 4
const ROWS_PER_LOOK = 64

/**
 * Reads on the caller's thread, in slices, from one snapshot. On a connection of its own, because the one for all other reads ends
 * its transaction with every change.
 */
export async function* scanFile<R>(
  file: string,
  sql: string,
  params: readonly (string | number | null)[],
): AsyncGenerator<R[]> {
  try {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 1_000 })
    try {
      let slice: R[] = []
      let until = performance.now() + SLICE_MS
      for (const row of db.prepare(sql).iterate(...params)) {
        slice.push(row as R)
        if (slice.length % ROWS_PER_LOOK !== 0 || performance.now() < until) continue
        yield slice
        await setImmediate()
        slice = []
        until = performance.now() + SLICE_MS
      }
      yield slice
    } finally {
      db.close()
    }
  } catch (error) {
    throw toReadError(error)
  }
}
