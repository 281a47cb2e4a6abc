import type pg from 'pg'
import { StoreError } from '../errors.ts'
import { toStoreError } from './errors.ts'

const POLL_EVERY_MS = 1_000
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
 * before. Polls once a second by itself and calls `onAnswer` after each such answer.
 */
export async function pollGeneration(pool: pg.Pool, onAnswer: () => void): Promise<GenerationPoll> {
  let next: Promise<number> | undefined
  let running: Promise<unknown> = Promise.resolve()
  /** The database's clock when our monotonic clock read zero, so that setting our wall clock changes nothing. */
  let origin = 0
  let latest = 0
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
      const row = answer.rows[0] as { generation: number; at: number }
      origin = row.at - (sent + performance.now()) / 2
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

  await generation()
  const timer = setInterval(() => void generation().then(onAnswer, () => undefined), POLL_EVERY_MS).unref()
  return {
    generation,
    now: () => {
      latest = Math.max(latest, Math.round(performance.now() + origin))
      return latest
    },
    trouble: () => failed,
    stop: () => clearInterval(timer),
  }
}
