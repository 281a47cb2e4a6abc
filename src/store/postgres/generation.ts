import type pg from 'pg'
import type { Topic } from '../engine/change.ts'
import { createChanges } from '../engine/changes.ts'
import { StoreError, StoreRefused } from '../errors.ts'
import { createDatabaseClock, type DatabaseClock } from './clock.ts'
import { asError, toStoreError } from './errors.ts'

const POLL_EVERY_MS = 1_000
/** A database that keeps the smallest query waiting for this long serves nobody: a query times out only after 15 s. */
const SILENT_AFTER_MS = 1_500
/** Answers within which two must agree on the time when a node starts. */
const CLOCK_TRIES = 10
/** The database's clock as SQL: epoch ms. */
export const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
const EVERYTHING = '*'
/** Topics that the row keeps. A node that has missed more of them treats everything as changed. */
const KEPT = 48
/** The row holds the generation and the topics of the latest raises, newest first, separated by spaces. */
const QUERY = {
  name: 'generation',
  text: `SELECT split_part(value, ' ', 1)::bigint AS generation,
    CASE WHEN split_part(value, ' ', 1)::bigint > $1 THEN value END AS changes,
    ${NOW_MS} AS at
    FROM meta WHERE key = 'generation'`,
}
const RAISE = `UPDATE meta SET value = array_to_string(
  ARRAY[(split_part(value, ' ', 1)::bigint + 1)::text, $1] || (string_to_array(value, ' '))[2:${KEPT}], ' ')
  WHERE key = 'generation'`

/** The statement that raises the generation. It locks the row until its transaction ends, so raises have one order. */
export function raiseGeneration(topic: Topic | undefined): pg.QueryConfig {
  return { text: RAISE, values: [topic ?? EVERYTHING] }
}

export interface GenerationPoll {
  generation(): Promise<number>
  /** As `Engine.changedAt`. */
  changedAt(topic: Topic): number
  /** The database's clock, in epoch ms. */
  now(): number
  trouble(): string | undefined
  stop(): void
}

export interface Heard {
  /** Called after each answer to one of its own polls. */
  onAnswer?(): void
  /** The size of a step of the database's clock, in ms. */
  onClockStep?(ms: number): void
  /** Called once for each state: with the error, or without one when the database works again. */
  readonly onTrouble?: ((what: string, error: unknown) => void) | undefined
}

/**
 * Reads the generation and the clock in one small query on a connection of its own. Callers that ask at the same
 * moment share a query, but only one that starts after they asked, so that they see what another node committed
 * before. Polls once a second by itself. Throws `StoreRefused` if no two answers agree on the time.
 */
export async function pollGeneration(pool: pg.Pool, heard: Heard = {}): Promise<GenerationPoll> {
  const clock = createDatabaseClock((ms) => heard.onClockStep?.(ms))
  let next: Promise<number> | undefined
  let running: Promise<unknown> = Promise.resolve()
  /** The generation that was last read, and how much we add to it. */
  let stored = 0
  let added = 0
  let failed: string | undefined
  const changes = createChanges()
  const silence = watchSilence()
  let connection: pg.PoolClient | undefined

  /**
   * `row`: the whole row, if the generation has risen since the last answer. `isOther`: over another connection, and so
   * perhaps from another server, whose raises since may have other topics.
   */
  function learn(generation: number, row: string | null, isOther: boolean): void {
    const topics = row?.split(' ').slice(1) ?? []
    const missed = generation - stored
    // A lagging replica took over, or a backup was restored: our caches hold changes that were lost. Go on upwards. Over another
    // connection the same number may stand for other changes: the replica's own raises have caught up with what was lost.
    if (missed < 0 || (missed === 0 && isOther)) added += 1 - missed
    stored = generation
    if (isOther || missed < 0 || missed > topics.length) changes.record(stored + added, undefined)
    else
      for (let age = missed - 1; age >= 0; age -= 1) {
        const topic = topics[age]
        changes.record(stored + added - age, topic === EVERYTHING ? undefined : topic)
      }
  }

  async function ask(): Promise<number> {
    try {
      const client = await pool.connect()
      const sent = performance.now()
      const row = await query(client, stored)
      const received = performance.now()
      clock.learn({ at: row.at, sent, received })
      if (failed !== undefined) heard.onTrouble?.('the database can be read again', undefined)
      failed = undefined
      learn(row.generation, row.changes, client !== connection)
      connection = client
      return stored + added
    } catch (cause) {
      const error = toStoreError(cause, 'read')
      const what = error instanceof StoreError ? error.detail : error.message
      if (what !== failed) heard.onTrouble?.(what, cause)
      failed = what
      throw error
    }
  }

  function start(): Promise<number> {
    next = undefined
    const asking = silence.during(ask)
    running = asking.catch(() => undefined)
    return asking
  }

  function generation(): Promise<number> {
    next ??= running.then(start)
    return next
  }

  await untilSet(clock, generation)
  const timer = setInterval(
    () =>
      void generation().then(
        () => heard.onAnswer?.(),
        () => undefined,
      ),
    POLL_EVERY_MS,
  ).unref()
  return {
    generation,
    changedAt: changes.changedAt,
    now: clock.now,
    trouble: () => failed ?? silence.trouble(),
    stop: () => clearInterval(timer),
  }
}

interface Answer {
  readonly generation: number
  readonly changes: string | null
  readonly at: number
}

/** Gives the connection back; closes one that failed. */
async function query(client: pg.PoolClient, stored: number): Promise<Answer> {
  try {
    const { rows } = await client.query({ ...QUERY, values: [stored] })
    client.release()
    return rows[0] as Answer
  } catch (error) {
    client.release(asError(error))
    throw error
  }
}

function watchSilence() {
  let askedAt: number | undefined
  return {
    during: <T>(ask: () => Promise<T>): Promise<T> => {
      askedAt = performance.now()
      return ask().finally(() => {
        askedAt = undefined
      })
    },
    trouble: () =>
      askedAt !== undefined && performance.now() - askedAt > SILENT_AFTER_MS
        ? 'the database does not answer'
        : undefined,
  }
}

/** Throws `StoreRefused` if no two answers agree on the time. */
async function untilSet(clock: DatabaseClock, ask: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; !clock.isSet(); tries += 1) {
    if (tries === CLOCK_TRIES)
      throw new StoreRefused(
        "no two answers agree on the database's time. Give the address of one PostgreSQL server, and set its clock",
      )
    await ask()
  }
}
