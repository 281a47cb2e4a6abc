import { setTimeout as delay } from 'node:timers/promises'
import { BackendError } from '../kind.ts'
import type { Config } from './config.ts'
import { LOCKED, sqlState, toBackendError } from './faults.ts'
import { disown, dropLargeObjects, dropSome, revokeGrants, revokeMemberships, START } from './leftovers.ts'
import { endPrepared, preparedBy, preparedHolding } from './prepared.ts'
import {
  evictCredentials,
  findRole,
  joinRole,
  namesRole,
  ROLES_LOCKED,
  terminateSessions,
  viaOf,
} from './roles.ts'
import type { Connections, Session } from './session.ts'
import { quoteIdentifier, setLockTimeout } from './statements.ts'

/** A round that met a concurrent change is begun again from the start; every step may be repeated. */
const ROUNDS = 5
const PAUSE_MS = 25
/** A second's worth of pauses. */
const ROOM_ROUNDS = 40

/**
 * `XX000` "tuple concurrently updated", serialisation, deadlock; `2BP01`: a concurrent grant in another database;
 * `42704`: the role was dropped elsewhere, which the next round finds; `23505`: another role joined it.
 */
const AGAIN = new Set(['XX000', '40001', '40P01', '2BP01', '42704', '23505'])

/** How long NOLOGIN waits for the role's own row, and DROP ROLE for transactions that name the role, in ms. */
const ROLE_LOCK_MS = 250
/**
 * Its objects cannot be dropped now: others depend on them, there are more than the server has locks for, or they are in
 * use.
 */
const KEPT = new Set(['2BP01', '53200', LOCKED, '57014'])

/**
 * Ends a role: no new login, no open session, nothing owned or granted in any database, no role. Sessions
 * outlive both VALID UNTIL and DROP ROLE, hence the order. A role that does not exist is success.
 * Throws `BackendError`; completed steps stay done, and the next call continues from there.
 */
export async function revokeRole(
  connections: Connections,
  settings: Config,
  role: string,
  signal: AbortSignal,
): Promise<void> {
  for (let round = 1; ; round += 1) {
    try {
      if (await tryRevoke(connections, settings, role, signal)) return
      if (round >= ROUNDS) throw new BackendError('unavailable', 'The role keeps opening sessions.')
    } catch (error) {
      if (round >= ROUNDS || signal.aborted || !AGAIN.has(stateOf(error) ?? '')) {
        throw toBackendError(error, signal)
      }
    }
    await pause(signal)
  }
}

/** False: a session came in at the last moment. */
async function tryRevoke(
  connections: Connections,
  settings: Config,
  role: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { database: main } = settings
  // Not there: it may still be created by a transaction that holds the advisory lock.
  const found =
    (await connections.apart(main, signal, (session) => findRole(session, role))) ??
    (await connections.change(main, signal, (session) => findRole(session, role)))
  if (found === undefined) return true
  const ending: Ending = { connections, main, role, oid: found.oid, signal }
  await disable(ending)
  await endSessions(ending)
  await endPrepared(connections, main, preparedBy(role), signal)
  const databases = await connections.apart(main, signal, (session) => databasesOf(session, found.oid))
  for (const database of new Set([...databases, main])) {
    await shed(connections, settings, database, found.oid, signal)
    await letGo(connections, settings, database, { role, oid: found.oid }, signal)
  }
  return drop(ending, settings)
}

interface Ending {
  readonly connections: Connections
  readonly main: string
  readonly role: string
  readonly oid: string
  readonly signal: AbortSignal
}

/**
 * Does the work in a transaction that waits at most `ROLE_LOCK_MS` for a lock. Before each retry, it ends the sessions of
 * all credentials that hold a lock described by `held`, and rolls back their prepared transactions.
 */
async function pastCredentials<T>(
  { connections, main, signal }: Ending,
  held: string,
  transact: Connections['apart'],
  work: (session: Session) => Promise<T>,
): Promise<T> {
  for (let round = 1; ; round += 1) {
    try {
      return await transact(main, signal, async (session) => {
        await session.run([setLockTimeout(ROLE_LOCK_MS)])
        if (round > 1) await evictCredentials(session, held)
        return work(session)
      })
    } catch (error) {
      if (round >= ROUNDS || stateOf(error) !== LOCKED) throw error
      await endPrepared(connections, main, preparedHolding(held), signal)
    }
  }
}

/**
 * Revokes the login. The holder of the credential can keep the role's own row locked, by ALTER ROLE CURRENT_USER in a
 * transaction left open or prepared; before PostgreSQL 15 also as another credential that it made a member.
 */
function disable(ending: Ending): Promise<void> {
  const { connections, role } = ending
  return pastCredentials(ending, ROLES_LOCKED, connections.apart, async (session) => {
    if ((await findRole(session, role))?.login !== true) return
    await session.run([`ALTER ROLE ${quoteIdentifier(role)} NOLOGIN VALID UNTIL '-infinity'`])
  })
}

/** Until PostgreSQL 14 they can keep us from joining the role, by a GRANT of it to ours left open or prepared. */
async function endSessions(ending: Ending): Promise<void> {
  const { connections, role, oid, signal } = ending
  const end = async (session: Session) => {
    await joinRole(session, role)
    return terminateSessions(session, oid)
  }
  // A transaction each: within one, pg_stat_activity shows the same picture for ever.
  while ((await pastCredentials(ending, ROLES_LOCKED, connections.apart, end)) > 0) await pause(signal)
}

/** False: a session came in at the last moment. A GRANT to the role that is left open or prepared keeps it. */
function drop(ending: Ending, settings: Config): Promise<boolean> {
  const { connections, role, oid } = ending
  return pastCredentials(ending, namesRole(oid), connections.change, async (session) => {
    if ((await findRole(session, role)) === undefined) return true
    await disown(session, role, settings)
    // One that was past the check of LOGIN when it was taken away, and had not shown itself yet.
    if ((await terminateSessions(session, oid)) > 0) return false
    const names = [viaOf(role), role].map(quoteIdentifier).join(', ')
    await session.run([setLockTimeout(ROLE_LOCK_MS), `DROP ROLE IF EXISTS ${names}`])
    return true
  })
}

/** The databases in which the role owns or was granted something. 1260 is pg_authid; shared objects have dbid 0. */
async function databasesOf(session: Session, oid: string): Promise<readonly string[]> {
  const rows = await session.query(
    `SELECT DISTINCT d.datname FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid
      WHERE s.refclassid = 1260 AND s.refobjid = $1::oid AND d.datallowconn`,
    [oid],
  )
  return rows.map((row) => String(row['datname']))
}

/** Committed before the role is dropped: if dropping is refused, its grants are gone all the same. */
async function letGo(
  connections: Connections,
  settings: Config,
  database: string,
  { role, oid }: { readonly role: string; readonly oid: string },
  signal: AbortSignal,
): Promise<void> {
  try {
    await connections.change(database, signal, (session) => disown(session, role, settings))
  } catch (error) {
    if (KEPT.has(stateOf(error) ?? '')) {
      const change = <T>(work: (session: Session) => Promise<T>) =>
        whenThereIsRoom(signal, () => connections.change(database, signal, work))
      await inSlices(START, (after) => change((session) => revokeGrants(session, role, oid, after)))
      await inSlices('0', (after) => change((session) => revokeMemberships(session, role, oid, after)))
    }
    throw error
  }
}

/** Each slice returns where the next begins; undefined when nothing is left. */
async function inSlices<P>(start: P, slice: (after: P) => Promise<P | undefined>): Promise<void> {
  for (let place: P | undefined = start; place !== undefined; ) place = await slice(place)
}

/**
 * The server reports an error before it releases the locks of the transaction: for a moment after a DROP OWNED that ran
 * out of locks (53200), no other session gets any.
 */
async function whenThereIsRoom<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let round = 1; ; round += 1) {
    try {
      return await work()
    } catch (error) {
      if (round >= ROOM_ROUNDS || stateOf(error) !== '53200') throw error
    }
    await pause(signal)
  }
}

function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof BackendError ? error.cause : error)
}

/**
 * DROP OWNED has a lock for each that it drops to the end of the transaction, and the server has room for some thousands:
 * of more, most are dropped before it, some at a time.
 */
async function shed(
  connections: Connections,
  settings: Config,
  database: string,
  oid: string,
  signal: AbortSignal,
): Promise<void> {
  const kept = settings.reassign_owned_to !== undefined
  const drop = (some: (session: Session) => Promise<boolean>) => connections.apart(database, signal, some)
  if (!kept) while (await drop((session) => dropLargeObjects(session, oid)));
  try {
    while (await drop((session) => dropSome(session, oid, kept)));
  } catch (error) {
    // What cannot be dropped by itself can perhaps with all the rest, and if not, DROP OWNED says so.
    if (signal.aborted || stateOf(error) === undefined) throw error
  }
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await delay(PAUSE_MS, undefined, { signal })
  } catch (error) {
    throw toBackendError(error, signal)
  }
}
