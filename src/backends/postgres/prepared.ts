import { isCredential, joinAround, viaOf } from './roles.ts'
import type { Connections, Session } from './session.ts'
import { quoteIdentifier, quoteLiteral } from './statements.ts'

/** On `pg_prepared_xacts p`. */
export const preparedBy = (role: string) => `p.owner = ${quoteLiteral(role)}`

/** Those of any credential that hold a lock of `pg_locks l` that `held` describes. */
export const preparedHolding = (held: string) => `${isCredential('p.owner')} AND EXISTS (
  SELECT FROM pg_locks x JOIN pg_locks l ON l.virtualtransaction = x.virtualtransaction AND l.pid IS NULL
   WHERE x.locktype = 'transactionid' AND x.transactionid = p.transaction AND x.pid IS NULL AND ${held})`

export async function isPrepared(session: Session, which: string): Promise<boolean> {
  return (await session.query(`SELECT FROM pg_prepared_xacts p WHERE ${which} LIMIT 1`)).length > 0
}

interface Prepared {
  readonly gid: string
  readonly database: string
  readonly owner: string
  readonly joined: boolean
}

/** Owners that are not joined yet are, by way of another role, once the transaction is committed. */
async function findPrepared(session: Session, which: string): Promise<readonly Prepared[]> {
  const rows = await session.query(
    `SELECT gid, database, owner, pg_has_role(owner, 'USAGE') AS joined FROM pg_prepared_xacts p WHERE ${which}`,
  )
  const found = rows.map(({ gid, database, owner, joined }) => ({
    gid: String(gid),
    database: String(database),
    owner: String(owner),
    joined: joined === true,
  }))
  for (const owner of strangers(found)) await joinAround(session, owner)
  return found
}

/** In its database, outside a transaction. */
async function rollBack(session: Session, { gid, owner }: Prepared): Promise<void> {
  await session.query(`SET ROLE ${quoteIdentifier(owner)}`)
  await session.query(`ROLLBACK PREPARED ${quoteLiteral(gid)}`)
  await session.query('RESET ROLE')
}

async function leaveAround(session: Session, found: readonly Prepared[]): Promise<void> {
  for (const owner of strangers(found)) {
    await session.query(`DROP ROLE IF EXISTS ${quoteIdentifier(viaOf(owner))}`)
  }
}

function strangers(found: readonly Prepared[]): ReadonlySet<string> {
  return new Set(found.filter(({ joined }) => !joined).map(({ owner }) => owner))
}

/**
 * Rolls back what credentials have prepared for a two-phase commit: it outlives sessions, keeps its locks (on the role's
 * own row as well), and could still be committed. By its owner, in its database, outside a transaction.
 */
export async function endPrepared(
  connections: Connections,
  main: string,
  which: string,
  signal: AbortSignal,
): Promise<void> {
  const found = await connections.apart(main, signal, (session) => findPrepared(session, which))
  for (const one of found) {
    await connections.use(one.database, signal, (session) => rollBack(session, one))
  }
  if (found.length > 0) await connections.use(main, signal, (session) => leaveAround(session, found))
}

/** The same for transactions prepared in the connected database, outside a transaction of ours. */
export async function endPreparedHere(session: Session, begin: string, which: string): Promise<void> {
  await session.run([begin])
  const found = await findPrepared(session, which)
  await session.run(['COMMIT'])
  for (const one of found) await rollBack(session, one)
  await leaveAround(session, found)
}
