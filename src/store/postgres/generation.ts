import type pg from 'pg'
import { StoreError } from '../errors.ts'
import { unreachable } from './errors.ts'

const BEAT_MS = 1_000
const QUERY = {
  name: 'pulse',
  text: "SELECT value::bigint AS generation, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at FROM meta WHERE key = 'generation'",
}

export interface Pulse {
  generation(): Promise<number>
  now(): number
  trouble(): string | undefined
  stop(): void
}

/**
 * The generation and the clock in one tiny query, shared by all who ask in the same moment, on a connection of
 * its own. A caller is given only an answer whose query began after it asked: what another node changed before
 * that is seen. `onBeat` is called once a second after an answer.
 */
export async function createPulse(pool: pg.Pool, onBeat: () => void): Promise<Pulse> {
  let next: Promise<number> | undefined
  let running: Promise<unknown> = Promise.resolve()
  /** Epoch ms of the database at zero of our monotonic clock: a step of our own wall clock moves nothing. */
  let origin = 0
  let latest = 0
  /** As it was last read, and how much is added to it. */
  let stored = 0
  let added = 0
  let failed: string | undefined

  async function beat(): Promise<number> {
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
      // A replica that had not got all took over, or a backup was restored: what is cached is from a future that is gone.
      if (row.generation < stored) added += stored - row.generation + 1
      stored = row.generation
      return stored + added
    } catch (cause) {
      failed = unreachable(cause) ? 'the database cannot be reached' : 'the database cannot be read'
      throw new StoreError(failed, { cause })
    }
  }

  function start(): Promise<number> {
    next = undefined
    const beating = beat()
    running = beating.catch(() => undefined)
    return beating
  }

  function generation(): Promise<number> {
    next ??= running.then(start)
    return next
  }

  await generation()
  const timer = setInterval(() => void generation().then(onBeat, () => undefined), BEAT_MS).unref()
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
