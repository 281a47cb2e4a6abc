import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestHost } from '../../../test/support/host.ts'
import { type Bench, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { postgres } from './kind.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.sql('CREATE TABLE blocked ()')
})
afterAll(() => bench?.close())

/** Keeps every other grant on the table waiting, until the result is called. */
async function block(): Promise<() => Promise<void>> {
  const other = new pg.Client({ connectionString: bench.database.url })
  await other.connect()
  await other.query('BEGIN; GRANT SELECT ON blocked TO pg_monitor')
  return () => other.end()
}

const granting = { grant: 'statements' as const, statements: ['GRANT SELECT ON public.blocked TO {{name}}'] }

const refusal = (detail: string) => ({
  fault: 'denied',
  message: expect.stringMatching(/^PostgreSQL (refused|canceled)/),
  detail: expect.stringContaining(detail),
})

describe('an answer of the server is no outage', () => {
  it('says "denied" of a lock that another transaction holds', async () => {
    const backend = await bench.open(granting)
    const unblock = await block()
    await expect(backend.issue(request(['*']), signal())).rejects.toMatchObject(refusal('55P03'))
    await unblock()
  })

  it('says "denied" of a statement that was canceled', async () => {
    const backend = await bench.open(granting)
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

  it.each(['40001', '53100', '53200', '58030', 'XX000', 'P0001', '99999'])(
    'says "denied" of the SQLSTATE %s',
    async (code) => {
      const statements = [`DO $$ BEGIN RAISE 'no' USING ERRCODE = '${code}'; END $$`]
      const backend = await bench.open({ grant: 'statements', statements })
      await expect(backend.issue(request(['any']), signal())).rejects.toMatchObject({ fault: 'denied' })
    },
  )

  it('names the table whose access list is full, and the way out', async () => {
    await bench.sql(
      `CREATE SCHEMA wall; CREATE TABLE wall."or""ders" (); CREATE TABLE wall.other (); GRANT SELECT ON wall.other TO PUBLIC`,
    )
    await bench.sql(
      `DO $$ BEGIN FOR i IN 1..2600 LOOP EXECUTE format('CREATE ROLE wall_%s', i); END LOOP; END $$`,
    )
    await bench.sql(
      `DO $$ BEGIN FOR i IN 1..2600 LOOP
         BEGIN EXECUTE format('GRANT SELECT ON wall."or""ders" TO wall_%s', i); EXCEPTION WHEN program_limit_exceeded THEN EXIT; END;
       END LOOP; END $$`,
    )
    const statements = ['GRANT SELECT ON ALL TABLES IN SCHEMA wall TO {{name}}']
    const backend = await bench.open({ grant: 'statements', statements })
    const error = await backend.issue(request(['any']), signal()).catch((caught: unknown) => caught)
    expect(error).toMatchObject({
      fault: 'misconfigured',
      message: expect.stringMatching(/wall\."or""ders" is full.*GRANT app_reader TO \{\{name\}\}/),
    })
    await bench.sql(
      `DROP SCHEMA wall CASCADE; DO $$ BEGIN FOR i IN 1..2600 LOOP EXECUTE format('DROP ROLE wall_%s', i); END LOOP; END $$`,
    )
  })
})

it('gives each statement half the time of the setting', async () => {
  const { host } = createTestHost('db')
  const statements = ["DO $$ BEGIN ASSERT current_setting('statement_timeout') = '20s'; END $$"]
  const settings = bench.settings({ grant: 'statements', statements })
  const backend = await postgres.open(settings, { ...host, timeoutMs: 40_000 })
  const issued = await backend.issue({ ...request(['any']), params: {} }, signal())
  await backend.revoke?.(issued.handle ?? {}, signal())
  await backend[Symbol.asyncDispose]()
})
