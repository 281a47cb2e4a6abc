import type pg from 'pg'
import { StoreError, StoreRefused } from '../errors.ts'
import { createDatabaseClock } from './clock.ts'
import { toStoreError } from './errors.ts'

const POLL_EVERY_MS = 1_000
/** Answers within which two must agree on the time when a node starts. */
const CLOCK_TRIES = 10
const QUERY = {
  name: 'generation',
  text: "SELECT value::bigint AS generation, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at FROM meta WHERE key = 'generation'",
}

export interface GenerationPoll {
  generation(): Promise<number>
  /** The database's clock, in epoch ms. */
  now(): number
  trouble(): string | undefined
  stop(): void
}

/**
 * Reads the generation and the clock in one small query on a connection of its own. Callers that ask at the same
 * moment share a query, but only one that starts after they asked, so that they see what another node committed
 * before. Polls once a second by itself and calls `onAnswer` after each such answer. `onClockStep` gets the size of each step
 * of the database's clock, in ms. Throws `StoreRefused` if no two answers agree on the time.
 */
export async function pollGeneration(
  pool: pg.Pool,
  onAnswer: () => void,
  onClockStep: (ms: number) => void = () => undefined,
): Promise<GenerationPoll> {
  const clock = createDatabaseClock(onClockStep)
  let next: Promise<number> | undefined
  let running: Promise<unknown> = Promise.resolve()
  /** The generation as last read, and how much we add to it. */
  let stored = 0
  let added = 0
  let failed: string | undefined

  async function ask(): Promise<number> {
    try {
      const client = await pool.connect()
      const sent = performance.now()
      const answer = await client.query(QUERY).then(
        (result) => {
          client.release()
          return result
        },
        (error: Error) => {
          client.release(error)
          throw error
        },
      )
      const received = performance.now()
      const row = answer.rows[0] as { generation: number; at: number }
      clock.learn({ at: row.at, sent, received })
      failed = undefined
      // A lagging replica took over, or a backup was restored: our caches hold changes that were lost. Go on upwards.
      if (row.generation < stored) added += stored - row.generation + 1
      stored = row.generation
      return stored + added
    } catch (cause) {
      const error = toStoreError(cause, 'read')
      failed = error instanceof StoreError ? error.detail : error.message
      throw error
    }
  }

  function start(): Promise<number> {
    next = undefined
    const asking = ask()
    running = asking.catch(() => undefined)
    return asking
  }

  function generation(): Promise<number> {
    next ??= running.then(start)
    return next
  }

  for (let tries = 0; !clock.isSet(); tries += 1) {
    if (tries === CLOCK_TRIES)
      throw new StoreRefused(
        "no two answers agree on the database's time. Give the address of one PostgreSQL server, and set its clock",
      )
    await generation()
  }
  const timer = setInterval(() => void generation().then(onAnswer, () => undefined), POLL_EVERY_MS).unref()
  return {
    generation,
    now: clock.now,
    trouble: () => failed,
    stop: () => clearInterval(timer),
  }
}
