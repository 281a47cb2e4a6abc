import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { CLOCK_SLACK_MS, createClock } from '../engine/clock.ts'
import { createBuilder } from '../engine/compile.ts'
import type { Engine } from '../engine/engine.ts'
import { asValue } from '../engine/run.ts'
import { StoreRefused } from '../errors.ts'
import { CommitQueue } from './commit-queue.ts'
import { cannotMake } from './errors.ts'
import { Reader } from './reader.ts'

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
  return {
    dialect: 'sqlite',
    build: createBuilder('sqlite'),
    stats: queue.stats,
    read: async <R>(query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
      const { sql, parameters } = query.compile()
      return reader.read<R>(sql, parameters.map(asValue))
    },
    prepare:
      <R>(sql: string) =>
      async (params: readonly (string | number | null)[]) =>
        reader.read<R>(sql, params),
    commit: (change, commitOptions) => queue.commit(change, commitOptions),
    generation: () => queue.generation,
    changedAt: queue.changes.changedAt,
    now: createClock(newestAt, undefined, undefined, (ms) => onTrouble(SET_BACK, behindBy(ms))),
    trouble: () => queue.trouble,
    close: async () => {
      await queue.close()
      reader.close()
    },
  }
}

const SET_BACK =
  'the system clock was set back. Mayfly keeps its own time, so credentials end when they should, but times in tokens and in the audit are ahead of the system clock. Set the clock; if the earlier time was wrong, restore a backup from before it'

function behindBy(ms: number): Error {
  return new Error(`behind by ${Math.round(ms / 1_000)} s`)
}

/** Our clock never goes back, so if it starts ahead of everybody else's, credentials live longer than they say. */
function warnOfClock(behindMs: number, onTrouble: (what: string, error: unknown) => void): void {
  if (behindMs < CLOCK_SLACK_MS) return
  onTrouble(
    'the system clock is behind the newest audit entry. Mayfly continues from that entry, so credentials end later by the difference. Set the clock; if the entry is wrong, restore a backup from before it',
    behindBy(behindMs),
  )
}
