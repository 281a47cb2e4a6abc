import { UPSTREAM_TIMEOUT_MS } from '../../domain/limits.ts'
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

/** Those who wait for it too: they stand before us. */
const TURN = `l.locktype = 'advisory' AND l.objsubid = 1
  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  AND (l.classid::bigint << 32 | l.objid::bigint) = ${LOCK}`

const HELD = preparedHolding(TURN)

const TAKE = `SELECT pg_advisory_xact_lock(${LOCK})`

/** How long one waits for its turn, in ms, before it looks who has it. */
const PATIENCE_MS = 250

const LOCK_TIMEOUT = setLockTimeout(UPSTREAM_TIMEOUT_MS / 2)

/** Role names are looked up in pg_catalog alone, so that nobody's operators or functions run with our rights. */
export const BEGIN = [
  'BEGIN',
  'SET LOCAL search_path = pg_catalog',
  'SET LOCAL client_min_messages = warning',
  `SET LOCAL statement_timeout = ${UPSTREAM_TIMEOUT_MS}`,
  LOCK_TIMEOUT,
  `SET LOCAL idle_in_transaction_session_timeout = ${UPSTREAM_TIMEOUT_MS}`,
].join('; ')

const BEGIN_IN_TURN = [
  BEGIN,
  'SAVEPOINT turn',
  setLockTimeout(PATIENCE_MS),
  TAKE,
  LOCK_TIMEOUT,
  'RELEASE turn',
]

/**
 * Begins a transaction and waits until no other of ours is under way in this database. Any role may take an advisory
 * lock, and a credential that held this one would stop all issuing and revoking: its session is ended, and what it has
 * prepared is rolled back.
 */
export async function beginInTurn(session: Session): Promise<void> {
  try {
    await session.run(BEGIN_IN_TURN)
  } catch (error) {
    if (sqlState(error) !== LOCKED) throw error
    await session.run(['ROLLBACK TO turn', 'RELEASE turn'])
    if (await isPrepared(session, HELD)) {
      await session.run(['ROLLBACK'])
      // Where that fails, another of ours is at it, or the wait shows that it is still held.
      await endPreparedHere(session, BEGIN, HELD).catch(() => undefined)
      await session.run(['ROLLBACK', 'RESET ROLE'])
      await session.run([BEGIN])
    }
    await evictCredentials(session, TURN)
    await session.run([TAKE])
  }
}
