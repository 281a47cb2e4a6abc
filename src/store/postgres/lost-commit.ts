import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import { retryDelay } from '../../domain/retry-delay.ts'
import type { Change } from '../engine/change.ts'
import { isTimeout } from './errors.ts'

const TRIES = 7
const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 1_600
/** The smallest write. Its commit is acknowledged after everything that was written before it. */
export const TRIAL =
  "INSERT INTO meta (key, value) VALUES ('trial', '') ON CONFLICT (key) DO UPDATE SET value = excluded.value"
const CONFIRM: pg.QueryConfig & { query_timeout: number } = { text: TRIAL, query_timeout: 5_000 }

/** The session whose connection was lost. */
export interface LostSession {
  readonly pid: number | undefined
  /** The application name of this node, which no other node uses. */
  readonly application: string
}

/**
 * Says for each change whether it was committed, after the connection was lost before the reply to COMMIT. The server may
 * still be executing that COMMIT, so its session is ended first. A session that is ended while it waits for a synchronous
 * standby leaves its changes where every reader sees them and a failover loses them, so one more commit must return before
 * a found change counts as kept. Throws when the database gives no answer, or confirms no commit, for some seconds.
 */
export async function findCommitted(
  pool: pg.Pool,
  session: LostSession,
  changes: readonly Change[],
): Promise<(boolean | undefined)[]> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      if (await isGone(pool, session)) {
        const committed = await readBack(pool, changes)
        if (committed.includes(true)) await pool.query(CONFIRM)
        return committed
      }
      if (attempt >= TRIES) throw new Error('the session of the lost connection does not end')
    } catch (error) {
      if (attempt >= TRIES || isTimeout(error)) throw error
    }
    await setTimeout(retryDelay(attempt, 1, FIRST_WAIT_MS, LONGEST_WAIT_MS))
  }
}

/** Ends the session if the server still lists it. The application name keeps a reused process id safe. */
async function isGone(pool: pg.Pool, { pid, application }: LostSession): Promise<boolean> {
  const answer = await pool.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2 AND pid <> pg_backend_pid()',
    [pid ?? 0, application],
  )
  return answer.rowCount === 0
}

/** The audit entry of a change proves that it was committed. Undefined for a change without one. */
async function readBack(pool: pg.Pool, changes: readonly Change[]): Promise<(boolean | undefined)[]> {
  const ids = changes.map(auditIdOf)
  const answer = await pool.query('SELECT id FROM audit WHERE id = ANY ($1::text[])', [
    ids.filter((id) => id !== undefined),
  ])
  const found = new Set((answer.rows as { id: string }[]).map((row) => row.id))
  return ids.map((id) => (id === undefined ? undefined : found.has(id)))
}

function auditIdOf(change: Change): string | undefined {
  for (const step of change) if (step.op === 'insert' && step.table === 'audit') return step.row.id
  return undefined
}
