import type { Connections, Session } from './client.ts'
import type { Config } from './config.ts'
import { joinRole } from './roles.ts'
import { quoteIdentifier, quoteLiteral } from './statements.ts'

/** Each that is dropped holds a lock to the end of the transaction, and the server has room for some thousands. */
const OBJECTS_AT_ONCE = 1_000

/**
 * Rolls back what the role has prepared for a two-phase commit: it outlives sessions, keeps its locks (on the role's
 * own row as well), and could still be committed. By its owner, in its database, outside a transaction.
 */
export async function endPrepared(
  connections: Connections,
  main: string,
  role: string,
  signal: AbortSignal,
): Promise<void> {
  const left = await connections.apart(main, signal, async (session) => {
    const owned = 'SELECT gid, database FROM pg_prepared_xacts WHERE owner = $1::name'
    const rows = await session.query(owned, [role])
    if (rows.length > 0) await joinRole(session, role)
    return rows
  })
  for (const { gid, database } of left) {
    await connections.use(String(database), signal, async (session) => {
      await session.query(`SET ROLE ${quoteIdentifier(role)}`)
      await session.query(`ROLLBACK PREPARED ${quoteLiteral(String(gid))}`)
      await session.query('RESET ROLE')
    })
  }
}

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
