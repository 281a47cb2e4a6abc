import { setTimeout as delay } from 'node:timers/promises'
import { StoreRefused } from '../errors.ts'
import { codeOf } from './errors.ts'

/** For a server that waits for its database. */
export interface Waiting {
  /** Ends the wait: what `openPostgres` throws then is the reason of the abort. */
  readonly signal: AbortSignal
  /** Why the database is not there yet: at the first failure, and whenever the reason changes. */
  onWait(why: string): void
}

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 2_000

/** Answers of a database, or a network, that is still starting. Everything else needs a person. */
const NOT_YET = new Map([
  ['ECONNREFUSED', 'nothing listens at its address'],
  ['ENOENT', 'nothing listens at its socket'],
  ['ECONNRESET', 'the connection was closed'],
  ['EPIPE', 'the connection was closed'],
  ['ETIMEDOUT', 'it does not answer'],
  ['EHOSTUNREACH', 'no route leads to its address'],
  ['ENETUNREACH', 'no route leads to its address'],
  ['EHOSTDOWN', 'no route leads to its address'],
  ['ENETDOWN', 'the network is down'],
  ['ENOTFOUND', 'its name has no address'],
  ['EAI_AGAIN', 'no name server answers'],
  ['57P01', 'it is shutting down'],
  ['57P02', 'it is recovering from a crash'],
  ['57P03', 'it is starting up'],
  ['53300', 'it has no connection left'],
])

/** The driver's errors without a code that mean the same (pg 8, pg-pool 3). */
const SILENT = /timeout expired|timeout exceeded|connection timeout|^Query read timeout/i
const CLOSED = /^Connection terminated/

/** Why the database cannot be reached yet; `undefined` for a fault that waiting does not repair. */
function notYet(error: unknown): string | undefined {
  const known = NOT_YET.get(codeOf(error) ?? '')
  if (known !== undefined || !(error instanceof Error)) return known
  if (SILENT.test(error.message)) return 'it does not answer'
  return CLOSED.test(error.message) ? 'the connection was closed' : undefined
}

/** SQLSTATE of faults that the administrator of the database, or of Mayfly, must correct. */
const REFUSALS = new Map([
  ['28P01', 'PostgreSQL refuses the password in the database URL. Correct it'],
  ['28000', "PostgreSQL refuses the user of the database URL. Check the user, and the server's pg_hba.conf"],
  ['3D000', 'the database that the URL names does not exist. Create it, with ENCODING UTF8'],
])

/**
 * Opens the store as soon as the database can be reached: at boot it often starts after Mayfly. Without `waiting` the first
 * failure counts. Throws `StoreRefused` at once for a login or a database that is not there.
 */
export async function onceReachable<T>(open: () => Promise<T>, waiting: Waiting | undefined): Promise<T> {
  let told: string | undefined
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    waiting?.signal.throwIfAborted()
    try {
      return await open()
    } catch (error) {
      const refusal = REFUSALS.get(codeOf(error) ?? '')
      if (refusal !== undefined) throw new StoreRefused(refusal, { cause: error })
      const why = notYet(error)
      if (waiting === undefined || why === undefined) throw error
      if (why !== told) waiting.onWait(why)
      told = why
      await delay(pause, undefined, { signal: waiting.signal }).catch(() => waiting.signal.throwIfAborted())
    }
  }
}
