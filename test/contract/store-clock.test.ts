import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../src/store/engine/engine.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const HOUR = 3_600_000

let server: TestPostgres
let database: TestDatabase
let admin: pg.Client
let engine: Engine
const told: string[] = []

beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  admin = new pg.Client(database.url)
  await admin.connect()
  // Sessions of this database find a clock of ours before the server's, so that the test can set it.
  await admin.query(`CREATE SCHEMA clock; CREATE SEQUENCE clock.answers; CREATE TABLE clock.shift (ms bigint, odd bigint);
    INSERT INTO clock.shift VALUES (0, 0);
    CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      'SELECT pg_catalog.clock_timestamp() + (CASE nextval(''clock.answers'') WHEN odd THEN ms + ${HOUR} ELSE ms END)
        * interval ''1 ms'' FROM clock.shift'`)
  await admin.query(`ALTER DATABASE ${database.name} SET search_path = public, clock, pg_catalog`)
  engine = await openPostgres({
    url: database.url,
    onTrouble: (what, error) => told.push(`${what}: ${error instanceof Error ? error.message : ''}`),
  })
})
afterAll(async () => {
  await engine.close()
  await admin.end()
  await database.drop()
  await server.stop()
})

const setShift = (ms: number) => admin.query('UPDATE clock.shift SET ms = $1', [ms])
/** How far the store's clock is ahead of the server's, and as much more as this machine stood still in between. */
const ahead = async () => {
  const { rows } = await admin.query('SELECT extract(epoch FROM pg_catalog.clock_timestamp()) * 1000 AS at')
  return engine.now() - Number(rows[0].at)
}
const near = (expected: number) => async () => {
  await engine.generation()
  return Math.abs((await ahead()) - expected) < 60_000
}

test('one odd answer of the database does not set the clock', async () => {
  await admin.query("UPDATE clock.shift SET odd = nextval('clock.answers') + 1")
  for (let n = 0; n < 5; n += 1) expect(await near(0)()).toBe(true)
  expect(told).toEqual([])
})

test('the store follows a clock that was set back, and warns', async () => {
  await setShift(-HOUR)
  await expect.poll(near(-HOUR)).toBe(true)
  const before = engine.now()
  await expect.poll(() => engine.now()).toBeGreaterThan(before)
  expect(told).toEqual([
    expect.stringMatching(
      /^the database's clock was set back, and Mayfly follows it\. What was issued before ends later by the difference: by -3[56]\d\d s$/,
    ),
  ])
})

test('a node does not start on a database whose answers do not agree', async () => {
  await admin.query(`CREATE OR REPLACE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + nextval(''clock.answers'') * interval ''1 hour'''`)
  await expect(openPostgres({ url: database.url })).rejects.toThrow(
    "no two answers agree on the database's time",
  )
})
