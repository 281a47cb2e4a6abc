import pg from 'pg'
import { StoreRefused } from '../errors.ts'
import { columnTypes, type Table } from '../schema/columns.ts'
import { migrate } from '../schema/migrate.ts'
import { migratable } from './migrate.ts'
import { requireUsableServer } from './requirements.ts'

const INT8 = 20

/** Values of one process, which the database already has or does not need. */
const NOT_COPIED = new Set(['generation', 'trial'])

/** Writes these rows into an empty database, all of them or none. Throws `StoreRefused` if it is not empty. */
export async function fillPostgres(
  url: string,
  tables: AsyncIterable<{ readonly table: Table; readonly rows: readonly Record<string, unknown>[] }>,
): Promise<void> {
  const types = new pg.TypeOverrides()
  types.setTypeParser(INT8, Number)
  const pool = new pg.Pool({ connectionString: url, max: 1, types, connectionTimeoutMillis: 5_000 })
  pool.on('error', () => undefined)
  try {
    await requireUsableServer(pool)
    await migrate(migratable(pool))
    const client = await pool.connect()
    client.on('error', () => undefined)
    try {
      await client.query('BEGIN; LOCK TABLE meta, agents IN ACCESS EXCLUSIVE MODE')
      await requireEmpty(client)
      for await (const { table, rows } of tables) await insert(client, table, rows)
      await client.query('COMMIT')
    } finally {
      // Everything uncommitted ends with the connection.
      client.release(true)
    }
  } finally {
    await pool.end()
  }
}

async function requireEmpty(client: pg.PoolClient): Promise<void> {
  const found = await client.query("SELECT 1 FROM meta WHERE key = 'key_check' UNION SELECT 1 FROM agents")
  if (found.rowCount === 0) return
  throw new StoreRefused(
    'the database of database_url already holds a Mayfly store. Stop the servers that use it, and give an empty database: createdb NAME',
  )
}

async function insert(
  client: pg.PoolClient,
  table: Table,
  all: readonly Record<string, unknown>[],
): Promise<void> {
  const rows = table === 'meta' ? all.filter(({ key }) => !NOT_COPIED.has(String(key))) : all
  const columns = columnTypes(table)
  const names = columns.map(([name]) => name).join(', ')
  const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`).join(', ')
  await client.query(
    `INSERT INTO ${table} (${names}) SELECT * FROM unnest(${arrays})`,
    columns.map(([name]) => rows.map((row) => row[name])),
  )
}
