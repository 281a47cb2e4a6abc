import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { moveToPostgres } from '../../src/store/move.ts'
import { COLUMNS, columnNames, type Table } from '../../src/store/schema/columns.ts'
import { openFile } from '../../src/store/sqlite/file.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const TABLES = Object.keys(COLUMNS) as Table[]

let folder: string
let postgres: TestPostgres
let database: TestDatabase
let client: pg.Client
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-move-'))
  postgres = await startPostgres()
  database = await postgres.createDatabase()
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, Number)
  client = new pg.Client({ connectionString: database.url, types })
  await client.connect()
})
afterEach(async () => {
  await client.end()
  await database.drop()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
})

/** Another value in every place, so that one that went to another column is seen. */
function rowOf(table: Table, number: number, isSparse: boolean): Record<string, string | number | null> {
  const values = Object.entries(COLUMNS[table]).map(([name, { type, nullable }], at) => {
    const value = type === 'bigint' ? number * 1_000 + at : `${table} ${name} ${number}`
    return [name, isSparse && nullable ? null : value] as const
  })
  return Object.fromEntries(values)
}

test('a move takes every column of every table along', async () => {
  const file = join(folder, 'copy.db')
  const { db } = await openFile(file)
  const given = new Map(TABLES.map((table) => [table, [rowOf(table, 1, false), rowOf(table, 2, true)]]))
  for (const [table, rows] of given)
    for (const row of rows) {
      const names = columnNames(table)
      const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
      db.prepare(sql).run(...Object.values(row))
    }
  db.close()
  await moveToPostgres(file, database.url)

  const made = await client.query(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
  )
  expect(made.rows.map(({ name }) => name).sort()).toEqual([...TABLES, 'mayfly_schema'].sort())
  for (const [table, rows] of given) {
    const { rows: moved } = await client.query(`SELECT * FROM ${table}`)
    // The database has a generation of its own.
    const own = table === 'meta' ? moved.filter(({ key }) => key !== 'generation') : moved
    expect(own, table).toHaveLength(rows.length)
    expect(own, table).toEqual(expect.arrayContaining(rows))
  }
})
