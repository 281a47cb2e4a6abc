import { LOCKED, sqlState } from './faults.ts'
import { endPreparedHere, isPrepared, preparedHolding } from './prepared.ts'
import { evictCredentials } from './roles.ts'
import type { Session } from './session.ts'
import { setLockTimeout } from './statements.ts'

/**
 * Held by every transaction of ours that grants or drops: concurrent GRANTs on one object fail ("tuple concurrently
 * updated"), and a revocation must wait for an issue whose COMMIT is on its way. The number is "mayfly" in ASCII.
 */
const LOCK = '120265298308217'

/** Its entries in pg_locks, those of sessions that wait for it included: they are ahead of us. */
const ENTRIES = `l.locktype = 'advisory' AND l.objsubid = 1
  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  AND (l.classid::bigint << 32 | l.objid::bigint) = ${LOCK}`

const HELD = preparedHolding(ENTRIES)

const TAKE = `SELECT pg_advisory_xact_lock(${LOCK})`

/** How long to wait for the lock, in ms, before looking at who holds it. */
const PATIENCE_MS = 250

const lockTimeout = (timeoutMs: number) => setLockTimeout(Math.floor(timeoutMs / 2))

/** Role names are looked up in pg_catalog alone, so that no foreign operator or function runs with our rights. */
export function begin(timeoutMs: number): string {
  return [
    'BEGIN',
    'SET LOCAL search_path = pg_catalog',
    'SET LOCAL client_min_messages = warning',
    `SET LOCAL statement_timeout = ${timeoutMs}`,
    lockTimeout(timeoutMs),
    `SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs}`,
  ].join('; ')
}

/**
 * Begins a transaction and waits until no other of ours is under way in this database. Any role may take an advisory
 * lock, and a credential that held this one would stop all issuing and revoking: its session is ended, and its prepared
 * transactions are rolled back.
 */
export async function beginLocked(session: Session, timeoutMs: number): Promise<void> {
  const attempt = [
    begin(timeoutMs),
    'SAVEPOINT unlocked',
    setLockTimeout(PATIENCE_MS),
    TAKE,
    lockTimeout(timeoutMs),
    'RELEASE unlocked',
  ]
  try {
    await session.run(attempt)
  } catch (error) {
    if (sqlState(error) !== LOCKED) throw error
    await session.run(['ROLLBACK TO unlocked', 'RELEASE unlocked'])
    if (await isPrepared(session, HELD)) {
      await session.run(['ROLLBACK'])
      // If that fails, another of our sessions is doing it, or the wait below shows that the lock is still held.
      await endPreparedHere(session, begin(timeoutMs), HELD).catch(() => undefined)
      await session.run(['ROLLBACK', 'RESET ROLE'])
      await session.run([begin(timeoutMs)])
    }
    await evictCredentials(session, ENTRIES)
    await session.run([TAKE])
  }
}
