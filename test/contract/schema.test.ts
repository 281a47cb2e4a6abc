import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { migratable } from '../../src/store/postgres/migrate.ts'
import { COLUMNS, type Column } from '../../src/store/schema/columns.ts'
import { MIGRATIONS } from '../../src/store/schema/migrate.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { startPostgres } from '../support/postgres.ts'
import { agentRow, DIALECTS, newAgent } from '../support/store.ts'

interface FoundColumn {
  table: string
  name: string
  type: string
  required: boolean
}
interface Schema {
  dump: string
  columns: FoundColumn[]
}

/** Ours, not SQLite's; sorted, so that a dump depends on nothing but the schema. */
async function sqliteSchema(): Promise<Schema> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-schema-'))
  await (await openSqlite({ directory })).close()
  const db = new DatabaseSync(join(directory, 'mayfly.db'))
  const objects = db
    .prepare(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name",
    )
    .all()
  const columns = db
    .prepare(
      `SELECT m.name AS "table", c.name, c.type, c."notnull" AS required FROM sqlite_schema m, pragma_table_info(m.name) c
       WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
    )
    .all()
  db.close()
  await rm(directory, { recursive: true })
  return {
    dump: `${objects.map((one) => `${String(one['sql'])};`).join('\n')}\n`,
    columns: columns.map((one) => ({
      table: String(one['table']),
      name: String(one['name']),
      // SQLite gives its own type names in capitals.
      type: one['type'] === 'INTEGER' ? 'bigint' : String(one['type']).toLowerCase(),
      required: one['required'] === 1,
    })),
  }
}

/** From the catalogue and not by pg_dump, whose text changes with its version. */
async function postgresSchema(): Promise<Schema> {
  const server = await startPostgres()
  const database = await server.createDatabase()
  await (await openPostgres({ url: database.url })).close()
  const client = new pg.Client(database.url)
  await client.connect()
  const found = await client.query(`
    SELECT c.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
      a.attnotnull AS required, coalesce(l.collname, '') AS collation, pg_get_expr(d.adbin, d.adrelid) AS fallback
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY c.relname COLLATE "C", a.attnum`)
  const indexes = await client.query(
    `SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname COLLATE "C"`,
  )
  await client.end()
  await database.drop()
  await server.stop()
  const lines = found.rows.map(
    (one) =>
      `${one.table}.${one.name} ${one.type}${one.collation === '' ? '' : ` COLLATE "${one.collation}"`}${one.required ? ' NOT NULL' : ''}${one.fallback === null ? '' : ` DEFAULT ${one.fallback}`};`,
  )
  return {
    dump: `${[...lines, ...indexes.rows.map((one) => `${one.indexdef};`)].join('\n')}\n`,
    columns: (found.rows as FoundColumn[]).filter((one) => one.table !== 'mayfly_schema'),
  }
}

describe.each([
  ['sqlite', sqliteSchema],
  ['postgres', postgresSchema],
] as const)('the schema on %s', (dialect, load) => {
  let schema: Schema
  beforeAll(async () => {
    schema = await load()
  })

  test('is the one that was reviewed (UPDATE_GOLDEN=1 writes it)', async () => {
    const golden = new URL(`../golden/schema-${dialect}.sql`, import.meta.url)
    if (process.env['UPDATE_GOLDEN'] === '1') await writeFile(golden, schema.dump)
    expect(schema.dump).toBe(await readFile(golden, 'utf8'))
  })

  test('has exactly the columns of columns.ts, with their types and NOT NULL', () => {
    const real: Record<string, Record<string, Column>> = {}
    for (const { table, name, type, required } of schema.columns)
      real[table] = { ...real[table], [name]: { type, nullable: !required } as Column }
    expect(real).toEqual(COLUMNS)
  })
})

test.each(DIALECTS)('keeps the data of a database of the first version on %s', async (dialect) => {
  const [directory, server] = [await mkdtemp(join(tmpdir(), 'mayfly-schema-')), await startPostgres()]
  const database = await server.createDatabase()
  const row = agentRow({ scopes: '["db:read"]' })
  const later = new Set([
    'audiences',
    'bounds',
    'description',
    'rotation',
    'previous_bearer_hash',
    'previous_secret_hash',
    'previous_until',
    'owner',
    'identity',
    'identity_values',
  ])
  const old = Object.entries(row).filter(([name]) => !later.has(name))
  const cells = old.map(([, value]) => (value === null ? 'NULL' : `'${value}'`))
  const insert = `INSERT INTO agents (${old.map(([name]) => name).join(', ')}) VALUES (${cells.join(', ')})`
  const first = MIGRATIONS[0]?.statements(dialect) ?? []
  if (dialect === 'sqlite') {
    const db = new DatabaseSync(join(directory, 'mayfly.db'))
    db.exec([...first, 'PRAGMA user_version = 1', insert].join(';\n'))
    db.close()
  } else {
    const pool = new pg.Pool({ connectionString: database.url })
    expect(await migratable(pool).version()).toBe(0)
    await migratable(pool).apply(first, 1)
    await pool.query(insert)
    await pool.end()
  }
  const databaseUrl = dialect === 'postgres' ? database.url : undefined
  const store = await openStore({ directory, databaseUrl })
  expect(await store.agents.findLiving(row.id)).toEqual(
    newAgent({
      id: row.id,
      scopes: ['db:read'],
      bearerHash: row.bearer_hash,
      clientId: row.client_id,
    }),
  )
  await store.close()
  await database.drop()
  await server.stop()
  await rm(directory, { recursive: true })
})
