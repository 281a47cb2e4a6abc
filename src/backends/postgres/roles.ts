import type { Session } from './session.ts'
import { quoteIdentifier } from './statements.ts'

/** Every role that we create begins so; no other is ever dropped or disconnected. */
export const ROLE_PREFIX = 'mf_'

/** Of a column that names a role. By all of its form: Mayfly's own may begin so too. */
export const isCredential = (column: string) => `${column} ~ '^${ROLE_PREFIX}[0-9a-z]{26}$'`

/** On `pg_locks l`: held by sessions that have changed a role (pg_authid) or a membership (pg_auth_members). */
export const ROLES_LOCKED = "l.relation IN (1260, 1261) AND l.mode = 'RowExclusiveLock'"

/** On `pg_locks l`: held by sessions that have granted something to the role, or want to drop it. */
export const namesRole = (oid: string) => `l.locktype = 'object' AND l.classid = 1260 AND l.objid = ${oid}`

export interface FoundRole {
  readonly oid: string
  /** Whether it may still log in. */
  readonly login: boolean
}

export async function findRole(session: Session, role: string): Promise<FoundRole | undefined> {
  const rows = await session.query(
    'SELECT oid::text AS oid, rolcanlogin AS login FROM pg_roles WHERE rolname = $1::name',
    [role],
  )
  return rows[0] === undefined ? undefined : { oid: String(rows[0]['oid']), login: rows[0]['login'] === true }
}

/**
 * DROP OWNED and, without pg_signal_backend, pg_terminate_backend need the role's own privileges. Since
 * PostgreSQL 16 the creator of a role may grant it to itself but does not inherit it by default.
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

/** A role between the two: see `joinAround`. It ends with the role that it is named after. */
export const viaOf = (role: string) => `${role}_via`

/**
 * Joins the role through a temporary role: before PostgreSQL 15 its holder can keep us from joining it, by a prepared GRANT
 * of it to ours, but not through a role whose name it does not know.
 */
export async function joinAround(session: Session, role: string): Promise<void> {
  const via = quoteIdentifier(viaOf(role))
  await session.run([
    `DROP ROLE IF EXISTS ${via}`,
    `CREATE ROLE ${via}`,
    `GRANT ${quoteIdentifier(role)} TO ${via}`,
  ])
  await joinRole(session, viaOf(role))
}

/** By oid: a name could be taken again. Returns how many sessions were seen. */
export async function terminateSessions(session: Session, oid: string): Promise<number> {
  const rows = await session.query(
    'SELECT pg_terminate_backend(pid) AS asked FROM pg_stat_activity WHERE usesysid = $1::oid',
    [oid],
  )
  return rows.length
}

/**
 * Ends the sessions of credentials that hold, or wait for, a lock of `pg_locks l` that `held` describes, whichever
 * credential's they are. Until PostgreSQL 14 a holder can keep us from joining its role, by a GRANT of it in a
 * transaction left open: there we are a member of pg_signal_backend for that moment.
 */
export async function evictCredentials(session: Session, held: string): Promise<void> {
  const rows = await session.query(
    `SELECT DISTINCT a.usename AS role, a.pid, current_setting('server_version_num')::int < 160000 AS old
       FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE ${isCredential('a.usename')} AND ${held}`,
  )
  if (rows.length === 0) return
  await session.run([
    'SAVEPOINT evict',
    ...(rows[0]?.['old'] === true ? ['GRANT pg_signal_backend TO CURRENT_USER'] : []),
  ])
  for (const { role, pid, old } of rows) {
    if (old !== true) await joinRole(session, String(role))
    await session.query('SELECT pg_terminate_backend($1::int)', [pid])
  }
  await session.run(['ROLLBACK TO evict', 'RELEASE evict'])
}
