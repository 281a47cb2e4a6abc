import type { Session } from './client.ts'
import { quoteIdentifier } from './statements.ts'

/** Every role that we create begins so; no other is ever dropped or disconnected. */
export const ROLE_PREFIX = 'mf_'

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

/** By oid: a name could be taken again. Returns how many sessions were seen. */
export async function terminateSessions(session: Session, oid: string): Promise<number> {
  const rows = await session.query(
    'SELECT pg_terminate_backend(pid) AS asked FROM pg_stat_activity WHERE usesysid = $1::oid',
    [oid],
  )
  return rows.length
}
