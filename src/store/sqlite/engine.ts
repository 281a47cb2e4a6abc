import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Compilable } from 'kysely'
import { CLOCK_SLACK_MS, createClock } from '../engine/clock.ts'
import { createBuilder } from '../engine/compile.ts'
import type { Engine } from '../engine/engine.ts'
import { FRESH_MS } from '../engine/fresh.ts'
import { compiled } from '../engine/run.ts'
import { StoreRefused } from '../errors.ts'
import { CommitQueue } from './commit-queue.ts'
import { cannotMake } from './errors.ts'
import { Reader } from './reader.ts'
import { scanFile } from './scan.ts'

export interface SqliteOptions {
  /** Holds `mayfly.db`. Created with mode 0700 if it does not exist. */
  directory: string
  onTrouble?: (what: string, error: unknown) => void
}

/** One file, one process: the data directory stays locked until `close`. */
export async function openSqlite(options: SqliteOptions): Promise<Engine> {
  const { directory, onTrouble = () => undefined } = options
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StoreRefused(cannotMake(directory, error))
  }
  const file = join(directory, 'mayfly.db')
  const queue = new CommitQueue({ directory, file, onTrouble })
  const newestAt = await queue.opened
  warnOfClock(newestAt - Date.now(), onTrouble)
  const reader = new Reader(file, () => queue.isQuiet())
  queue.onBeforeChange = () => reader.release()
  const now = createClock({
    floor: newestAt,
    onBehind: (ms) => onTrouble(SET_BACK, behindBy(ms)),
    onFollow: (ms) => onTrouble(FOLLOWED, behindBy(ms)),
  })
  queue.now = now
  return {
    dialect: 'sqlite',
    hasOtherNodes: false,
    endSlice: 100,
    expireSlice: 128,
    build: createBuilder('sqlite'),
    stats: queue.stats,
    read: async <R>(query: Compilable<R>) => {
      const { sql, params } = compiled(query)
      return reader.read<R>(sql, params)
    },
    scan: <R>(query: Compilable<R>) => {
      const { sql, params } = compiled(query)
      return scanFile<R>(file, sql, params)
    },
    prepare:
      <R>(sql: string) =>
      async (params: readonly (string | number | null)[]) =>
        reader.read<R>(sql, params),
    commit: (change, commitOptions) => queue.commit(change, commitOptions),
    generation: () => queue.generation,
    changedAt: queue.changes.changedAt,
    now,
    horizon: async () => Math.min(now(), queue.sentSince()) - FRESH_MS,
    trouble: () => queue.trouble,
    close: async () => {
      await queue.close()
      reader.close()
    },
  }
}

const SET_BACK =
  'the system clock was set back. Mayfly goes on at its own pace, and follows it if it stays so for a minute'
const FOLLOWED =
  'the system clock was set back a minute ago, and Mayfly follows it now. What was issued before ends later by the difference'

function behindBy(ms: number): Error {
  return new Error(`behind by ${Math.round(ms / 1_000)} s`)
}

/** The clock may have been wrong when the entry was written, or be wrong now: a minute shows which. */
function warnOfClock(behindMs: number, onTrouble: (what: string, error: unknown) => void): void {
  if (behindMs < CLOCK_SLACK_MS) return
  onTrouble(
    'the system clock is behind the newest audit entry. Mayfly goes on from that entry, and follows the clock if it stays so for a minute',
    behindBy(behindMs),
  )
}
