import { FRESH_MS } from '../engine/fresh.ts'
import { NOW_MS } from './generation.ts'
import { LATEST_MS } from './merge.ts'

/** The transactions of the whole server at one moment. */
export interface Moment {
  /** All transactions with smaller numbers have ended. */
  readonly xmin: bigint
  /** The next transaction gets this number. */
  readonly xmax: bigint
  /** Epoch ms on the database's clock. */
  readonly at: number
}

/**
 * How old the id of an entry may be when its transaction gets its number: it was fresh when it was sent, took no longer than
 * a late statement may, and waited for a lock until the statement timed out (10 s). The rest is for clocks that differ.
 */
const OLDEST_MS = FRESH_MS + LATEST_MS + 10_000 + 4_000
const MOST_MARKS = 100

export const MOMENT = `SELECT pg_snapshot_xmin(now)::text AS xmin, pg_snapshot_xmax(now)::text AS xmax, ${NOW_MS} AS at
  FROM pg_current_snapshot() AS now`

/**
 * Returns the function `Engine.horizon`. A transaction that got its number after a moment has no entry with an id that was
 * older than `OLDEST_MS` then. So once all that got theirs before have ended, those ids are all there. A transaction that
 * stays open, of whatever database of the server, holds the horizon back.
 */
export function createHorizon(ask: () => Promise<Moment>): () => Promise<number> {
  let reached = Number.NEGATIVE_INFINITY
  let marks: Moment[] = []
  return async () => {
    const moment = await ask()
    marks.push(moment)
    const passed = marks.filter(({ xmax }) => xmax <= moment.xmin)
    if (passed.length > 0) {
      reached = Math.max(...passed.map(({ at }) => at)) - OLDEST_MS
      marks = marks.filter((mark) => !passed.includes(mark))
    }
    // The oldest is reached first, so that it stays.
    if (marks.length > MOST_MARKS) marks.splice(1, 1)
    return reached
  }
}
