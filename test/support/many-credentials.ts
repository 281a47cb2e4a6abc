import type { Core } from '../../src/core/context.ts'
import { COLUMNS } from '../../src/store/schema/columns.ts'
import { someCredential } from './store.ts'

/** Stores `count` living credentials of this backend, without the work of issuing them. */
export async function addCredentials(
  { store }: Pick<Core, 'store'>,
  backend: string,
  agent: { readonly id: string; readonly name: string },
  count: number,
): Promise<void> {
  const found = await store.backends.findByName(backend)
  if (found === undefined) throw new Error('no such backend')
  const expiresAt = store.now() + 3_600_000
  const issued = { agentId: agent.id, agentName: agent.name, backendUid: found.uid, backend: found.name }
  const rows = Array.from({ length: count }, () =>
    someCredential({ ...issued, revocation: 'none', sealedHandle: null, expiresAt, dueAt: expiresAt }),
  )
  await store.commit(rows.map((row) => store.credentials.insert(row)))
}

/** Stores `count` more rows that differ from the one of this credential in the last 64 bits of the id alone. */
export async function multiplyCredential(
  { store }: Pick<Core, 'store'>,
  id: string,
  count: number,
): Promise<void> {
  const columns = Object.keys(COLUMNS.credentials)
  const others = columns.filter((name) => name !== 'id').join(', ')
  const isSqlite = store.dialect === 'sqlite'
  const numbers = isSqlite
    ? `(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i FROM n)`
    : `generate_series(1, ${count}) AS numbers(i)`
  const digits = isSqlite ? `printf('%016x', i)` : `lpad(to_hex(i), 16, '0')`
  const sql = `INSERT INTO credentials (id, ${others}) SELECT substr(id, 1, 15) || ${digits}, ${others} FROM credentials, ${numbers} WHERE id = ${isSqlite ? '?' : '$1'}`
  await store.commit([{ op: 'run', sql, params: [id], rows: count }])
}
