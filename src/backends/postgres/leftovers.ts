import type { Config } from './config.ts'
import type { Session } from './session.ts'
import { quoteIdentifier, setLockTimeout } from './statements.ts'

/** Each that is dropped holds a lock to the end of the transaction, and the server has room for some thousands. */
const OBJECTS_AT_ONCE = 1_000

/** How long DROP OWNED waits for objects in use, in ms: all other changes wait behind it. */
const DROP_LOCK_MS = 500

/**
 * In the database that `session` is connected to. Any role may make large objects, and DROP OWNED takes all in one
 * transaction: those are dropped beforehand, some at a time. Returns whether any may be left.
 */
export async function dropLargeObjects(session: Session, oid: string): Promise<boolean> {
  const rows = await session.query(
    `SELECT lo_unlink(oid) FROM (
       SELECT oid FROM pg_largeobject_metadata WHERE lomowner = $1::oid LIMIT ${OBJECTS_AT_ONCE}) one`,
    [oid],
  )
  return rows.length === OBJECTS_AT_ONCE
}

/** A table takes some locks to drop, one or more for each of its types, indexes and defaults. */
const DROPPED_AT_ONCE = 100

/** By the types of `pg_identify_object`, where DROP has another word. */
const DROPPABLE: Readonly<Record<string, string>> = {
  function: 'ROUTINE',
  procedure: 'ROUTINE',
  aggregate: 'ROUTINE',
  'statistics object': 'STATISTICS',
}

/**
 * In the connected database: drops some of the objects that the role owns, newest first, when there are more than DROP
 * OWNED should take at once. Temporary objects go with everything that depends on them, as at the end of their session;
 * the others only where nothing is to be reassigned. Returns whether there may be more.
 *
 * Only a superuser or a member of `pg_read_all_data` may name objects in a temporary schema; others must leave them to
 * autovacuum.
 */
export async function dropSome(session: Session, oid: string, kept: boolean): Promise<boolean> {
  const rows = await session.query(
    `SELECT i.type, i.identity, starts_with(i.schema, 'pg_temp_') AS temporary
       FROM (SELECT classid, objid FROM pg_shdepend
              WHERE refclassid = 1260 AND refobjid = $1::oid AND deptype = 'o'
                AND dbid = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              ORDER BY objid DESC) s, pg_identify_object(s.classid, s.objid, 0) i
      WHERE has_schema_privilege(to_regnamespace(i.schema), 'USAGE') AND length(i.identity) < 1000
        AND (NOT $2 OR starts_with(i.schema, 'pg_temp_')) AND NOT EXISTS (SELECT FROM pg_depend d
             WHERE d.classid = s.classid AND d.objid = s.objid AND d.objsubid = 0 AND d.deptype IN ('i', 'e'))
      LIMIT ${DROPPED_AT_ONCE}`,
    [oid, kept],
  )
  if (rows.length < DROPPED_AT_ONCE) return false
  await session.run([
    setLockTimeout(DROP_LOCK_MS),
    ...rows.map(({ type, identity, temporary }) => {
      const kind = DROPPABLE[String(type)] ?? String(type).toUpperCase()
      return `DROP ${kind} IF EXISTS ${String(identity)} ${temporary === true ? 'CASCADE' : 'RESTRICT'}`
    }),
  ])
  return true
}

/** In the database that `session` is connected to, and for what all databases share. */
export async function disown(session: Session, role: string, settings: Config): Promise<void> {
  const name = quoteIdentifier(role)
  const reassignTo = settings.reassign_owned_to
  await session.run([
    setLockTimeout(DROP_LOCK_MS),
    ...(reassignTo === undefined ? [] : [`REASSIGN OWNED BY ${name} TO ${quoteIdentifier(reassignTo)}`]),
    // REASSIGN leaves the grants of the role in place.
    `DROP OWNED BY ${name}`,
  ])
}

/** By the types of `pg_identify_object`, as GRANT and REVOKE call them. */
const GRANTABLE: Readonly<Record<string, string>> = {
  table: 'TABLE',
  view: 'TABLE',
  'materialized view': 'TABLE',
  'foreign table': 'TABLE',
  sequence: 'SEQUENCE',
  schema: 'SCHEMA',
  database: 'DATABASE',
  function: 'ROUTINE',
  procedure: 'ROUTINE',
  aggregate: 'ROUTINE',
  type: 'TYPE',
  language: 'LANGUAGE',
  'large object': 'LARGE OBJECT',
}

/** Named in at most 2,000 characters each, so that the reply stays within the bound; longer ones are passed over. */
const REVOKED_AT_ONCE = 100

/** A place in the order in which grants are taken back. */
interface Place {
  readonly classid: string
  readonly objid: string
}

export const START: Place = { classid: '0', objid: '0' }

/**
 * Revokes some grants of the role, in the connected database and on shared objects, without DROP OWNED: for when others
 * depend on objects that the role owns. Its functions then run without rights. Returns where to continue; skips grants
 * that cannot be revoked.
 */
export async function revokeGrants(
  session: Session,
  role: string,
  oid: string,
  after: Place,
): Promise<Place | undefined> {
  const granted = await session.query(
    `SELECT s.classid::text, s.objid::text, i.type, CASE WHEN length(i.identity) < 2000 THEN i.identity END AS identity
       FROM (SELECT DISTINCT classid, objid FROM pg_shdepend
              WHERE refclassid = 1260 AND refobjid = $1::oid AND deptype = 'a' AND (classid, objid) > ($2::oid, $3::oid)
                AND dbid IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
              ORDER BY classid, objid LIMIT ${REVOKED_AT_ONCE}) s, pg_identify_object(s.classid, s.objid, 0) i
      ORDER BY s.classid, s.objid`,
    [oid, after.classid, after.objid],
  )
  await session.run(
    granted.flatMap(({ type, identity }) => {
      const kind = GRANTABLE[String(type)]
      return kind === undefined || identity === null
        ? []
        : [`REVOKE ALL ON ${kind} ${String(identity)} ${from(role)}`]
    }),
  )
  const last = granted.at(-1)
  return last === undefined ? undefined : { classid: String(last['classid']), objid: String(last['objid']) }
}

/** The same for some of its memberships of other roles, by the oid of these. */
export async function revokeMemberships(
  session: Session,
  role: string,
  oid: string,
  after: string,
): Promise<string | undefined> {
  const joined = await session.query(
    `SELECT r.oid::text, r.rolname FROM pg_roles r
      WHERE r.oid > $2::oid AND EXISTS (SELECT FROM pg_auth_members m WHERE m.member = $1::oid AND m.roleid = r.oid)
      ORDER BY r.oid LIMIT ${REVOKED_AT_ONCE}`,
    [oid, after],
  )
  await session.run(joined.map(({ rolname }) => `REVOKE ${quoteIdentifier(String(rolname))} ${from(role)}`))
  const last = joined.at(-1)
  return last === undefined ? undefined : String(last['oid'])
}

const from = (role: string) => `FROM ${quoteIdentifier(role)} CASCADE`
