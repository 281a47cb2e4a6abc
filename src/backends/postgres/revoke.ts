import { setTimeout as delay } from 'node:timers/promises'
import { BackendError } from '../kind.ts'
import type { Connections, Session } from './client.ts'
import type { Config } from './config.ts'
import { sqlState, toBackendError } from './faults.ts'
import { quoteIdentifier } from './statements.ts'

/** A round that met a concurrent change is begun again from the start; every step may be repeated. */
const ROUNDS = 5
const PAUSE_MS = 25

/**
 * `XX000` "tuple concurrently updated", serialisation, deadlock; `2BP01`: a grant was on its way in another
 * database; `42704`: somebody else dropped the role, which the next round finds.
 */
const AGAIN = new Set(['XX000', '40001', '40P01', '2BP01', '42704'])

interface Role {
  readonly oid: string
  readonly databases: readonly string[]
}

/**
 * Ends a role: no new login, no open session, nothing owned or granted in any database, no role. Sessions
 * outlive both VALID UNTIL and DROP ROLE, hence the order. A role that does not exist is success.
 * Throws `BackendError`; what was done stays done, and the next call goes on from there.
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
      const cause = error instanceof BackendError ? error.cause : error
      if (round >= ROUNDS || signal.aborted || !AGAIN.has(sqlState(cause) ?? '')) {
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
  const found = await connections.change(settings.database, signal, (session) => disable(session, role))
  if (found === undefined) return true
  await endSessions(connections, settings.database, found.oid, signal)
  for (const database of found.databases) {
    if (database === settings.database) continue
    await connections.change(database, signal, (session) => disown(session, role, settings))
  }
  return connections.change(settings.database, signal, async (session) => {
    if ((await findRole(session, role)) === undefined) return true
    await disown(session, role, settings)
    // One that was past the check of LOGIN when it was taken away, and had not shown itself yet.
    if ((await terminateSessions(session, found.oid)) > 0) return false
    await session.run([`DROP ROLE ${quoteIdentifier(role)}`])
    return true
  })
}

async function disable(session: Session, role: string): Promise<Role | undefined> {
  const oid = await findRole(session, role)
  if (oid === undefined) return undefined
  await session.run([`ALTER ROLE ${quoteIdentifier(role)} NOLOGIN VALID UNTIL '-infinity'`])
  await joinRole(session, role)
  // 1260 is pg_authid. Shared objects have dbid 0; they are dealt with from the main database.
  const rows = await session.query(
    `SELECT DISTINCT d.datname FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid
      WHERE s.refclassid = 1260 AND s.refobjid = $1::oid AND d.datallowconn`,
    [oid],
  )
  return { oid, databases: rows.map((row) => String(row['datname'])) }
}

async function findRole(session: Session, role: string): Promise<string | undefined> {
  const rows = await session.query('SELECT oid::text AS oid FROM pg_roles WHERE rolname = $1::name', [role])
  return rows[0] === undefined ? undefined : String(rows[0]['oid'])
}

/**
 * DROP OWNED and, without pg_signal_backend, pg_terminate_backend need the role's own privileges. Since
 * PostgreSQL 16 whoever creates a role may grant it to itself but does not inherit it by default.
 */
export async function joinRole(session: Session, role: string): Promise<void> {
  const rows = await session.query(
    `SELECT pg_has_role($1::name, 'USAGE') AS joined, current_setting('server_version_num')::int AS version`,
    [role],
  )
  if (rows[0]?.['joined'] === true) return
  const options = Number(rows[0]?.['version']) >= 160_000 ? ' WITH INHERIT TRUE, SET TRUE' : ''
  await session.run([`GRANT ${quoteIdentifier(role)} TO CURRENT_USER${options}`])
}

/** In the database that `session` is connected to, and for what all databases share. */
export async function disown(session: Session, role: string, settings: Config): Promise<void> {
  const name = quoteIdentifier(role)
  const heir = settings.reassign_owned_to
  await session.run([
    ...(heir === undefined ? [] : [`REASSIGN OWNED BY ${name} TO ${quoteIdentifier(heir)}`]),
    // After REASSIGN it still has the grants to take back.
    `DROP OWNED BY ${name}`,
  ])
}

async function endSessions(
  connections: Connections,
  database: string,
  oid: string,
  signal: AbortSignal,
): Promise<void> {
  // A transaction each: within one, pg_stat_activity shows the same picture for ever.
  while ((await connections.change(database, signal, (session) => terminateSessions(session, oid))) > 0) {
    await pause(signal)
  }
}

/** By oid: a name could be taken again. Returns how many sessions were seen. */
async function terminateSessions(session: Session, oid: string): Promise<number> {
  const rows = await session.query(
    'SELECT pg_terminate_backend(pid) AS asked FROM pg_stat_activity WHERE usesysid = $1::oid',
    [oid],
  )
  return rows.length
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await delay(PAUSE_MS, undefined, { signal })
  } catch (error) {
    throw toBackendError(error, signal)
  }
}
