import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestHost } from '../../../test/support/host.ts'
import { type Bench, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { postgres } from './kind.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
})
afterAll(() => bench?.close())

/** Keeps every other grant on a new table waiting, until the result is called. */
async function block(): Promise<() => Promise<void>> {
  const other = new pg.Client({ connectionString: bench.database.url })
  await other.connect()
  await other.query('CREATE TABLE IF NOT EXISTS blocked ()')
  await other.query('BEGIN; GRANT SELECT ON blocked TO pg_monitor')
  return () => other.end()
}

const refusal = (detail: string) => ({
  fault: 'denied',
  message: expect.stringMatching(/^PostgreSQL (refused|canceled)/),
  detail: expect.stringContaining(detail),
})

it('says "denied", which is no outage, of a lock that another transaction holds', async () => {
  const backend = await bench.open()
  const unblock = await block()
  await expect(backend.issue(request(['*']), signal())).rejects.toMatchObject(refusal('55P03'))
  await unblock()
})

it('says "denied" of a statement that was canceled', async () => {
  const backend = await bench.open()
  const unblock = await block()
  const issued = backend.issue(request(['*']), signal()).catch((error: unknown) => error)
  const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
    AND application_name = 'mayfly' AND wait_event_type = 'Lock'`
  while ((await bench.sql(cancel)).length === 0);
  expect(await issued).toMatchObject(refusal('57014'))
  await unblock()
})

it('says "denied" of a statement that exceeds a limit of PostgreSQL', async () => {
  const statements = ["SELECT repeat('a', 2000000000)"]
  const backend = await bench.open({ grant: 'statements', statements })
  await expect(backend.issue(request(['any']), signal())).rejects.toMatchObject(refusal('54000'))
})

it('gives the session upstream the time of the setting', async () => {
  const { host } = createTestHost('db')
  const statements = ["DO $$ BEGIN ASSERT current_setting('statement_timeout') = '40s'; END $$"]
  const settings = bench.settings({ grant: 'statements', statements })
  const backend = await postgres.open(settings, { ...host, timeoutMs: 40_000 })
  const issued = await backend.issue({ ...request(['any']), params: {} }, signal())
  await backend.revoke?.(issued.handle ?? {}, signal())
  await backend[Symbol.asyncDispose]()
})
