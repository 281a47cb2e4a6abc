import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestHost } from '../../../test/support/host.ts'
import { type Bench, ended, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import type { Backend, Handle, Issued } from '../kind.ts'
import { type Connections, connect } from './client.ts'
import { revokeRole } from './revoke.ts'
import { createUpstream } from './upstream.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  // PostgreSQL 15 took CREATE on public from everybody; older ones and these tests have it.
  await bench.sql('GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE TABLE orders (id int)')
})
afterAll(() => bench?.close())

function revoke(backend: Backend, issued: { handle?: Handle }): Promise<void> {
  return backend.revoke?.(issued.handle ?? {}, signal()) ?? Promise.reject(new Error('no revoke'))
}

async function exists(issued: Issued): Promise<boolean> {
  const name = issued.handle?.['username']
  return (await bench.sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [name])).length > 0
}

describe('revoking', () => {
  it('refuses the login and ends every open session, busy or idle in a transaction', async () => {
    const backend = await bench.open()
    const issued = await backend.issue(request(['*']), signal())
    const idle = await login(issued)
    const busy = await login(issued)
    await idle.query('BEGIN; SELECT 1')
    const running = busy.query('SELECT pg_sleep(60)').catch((error: unknown) => error)
    const both = Promise.all([ended(idle), ended(busy)])
    await revoke(backend, issued)
    await both
    expect(await running).toMatchObject({ code: '57P01' })
    await expect(login(issued)).rejects.toMatchObject({ code: expect.stringMatching(/^28/) })
    expect(await exists(issued)).toBe(false)
  })

  it('drops what it owns and was granted, in every database, listed or not', async () => {
    const [second, foreign] = [await bench.createDatabase(), await bench.createDatabase()]
    for (const { name } of [second, foreign])
      await bench.sql('GRANT CREATE ON SCHEMA public TO PUBLIC', [], name)
    const backend = await bench.open({ databases: [bench.database.name, second.name], grant: 'read-write' })
    const issued = await backend.issue(request(['*']), signal())
    for (const database of [bench.database.name, second.name, foreign.name]) {
      const client = await login(issued, database)
      await client.query('CREATE TABLE public.mine (id int)')
      await client.query('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC')
      await client.end()
    }
    await revoke(backend, issued)
    expect(await exists(issued)).toBe(false)
    for (const database of [bench.database.name, second.name, foreign.name]) {
      expect(await bench.sql("SELECT to_regclass('public.mine') AS left", [], database)).toEqual([
        { left: null },
      ])
    }
  })

  it('reassigns what the role owns, where configured', async () => {
    const owner = await bench.createRole('')
    const backend = await bench.open({ reassign_owned_to: owner.username })
    await backend.check(signal())
    const issued = await backend.issue(request(['*']), signal())
    const client = await login(issued)
    await client.query('CREATE TABLE public.report (id int)')
    await client.end()
    await revoke(backend, issued)
    expect(await bench.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'report'")).toEqual([
      { tableowner: owner.username },
    ])
    await bench.sql('DROP TABLE report')
    expect(await exists(issued)).toBe(false)
  })

  it('continues where a failed attempt stopped', async () => {
    const backend = await bench.open()
    const issued = await backend.issue(request(['*']), signal())
    const name = String(issued.handle?.['username'])
    // A database is never dropped by DROP OWNED: an administrator has to take it away first.
    await bench.sql(`ALTER DATABASE ${bench.database.name} OWNER TO ${name}`)
    await expect(revoke(backend, issued)).rejects.toMatchObject({ name: 'BackendError', fault: 'denied' })
    await expect(login(issued)).rejects.toMatchObject({ code: expect.stringMatching(/^28/) })
    await bench.sql(`ALTER DATABASE ${bench.database.name} OWNER TO ${bench.server.username}`)
    await revoke(backend, issued)
    expect(await exists(issued)).toBe(false)
  })

  it('ends a credential of an older version, which has grants of its own in every database', async () => {
    const other = await bench.createDatabase()
    await bench.sql('CREATE TABLE things (id int)', [], other.name)
    const both = [bench.database.name, other.name]
    const admin = await bench.createRole('CREATEROLE')
    await bench.sql(`GRANT SELECT ON orders TO "${admin.username}" WITH GRANT OPTION`)
    await bench.sql(`GRANT SELECT ON things TO "${admin.username}" WITH GRANT OPTION`, [], other.name)
    for (const [who, maker] of [
      [admin, `SET ROLE "${admin.username}"`],
      [await bench.setUp({ databases: both }), 'RESET ROLE'],
    ] as const) {
      const backend = await bench.open({ ...who, databases: both })
      const old = backend.recover?.(request([]).credentialId) ?? {}
      const name = String(old['username'])
      // As version 0.1 made them: the login creates the role and grants it every table.
      await bench.sql(
        `${maker}; CREATE ROLE ${name} LOGIN VALID UNTIL 'infinity'; GRANT SELECT ON orders TO ${name}`,
      )
      await bench.sql(`${maker}; GRANT SELECT ON things TO ${name}`, [], other.name)
      await revoke(backend, { handle: old })
      expect(await bench.sql('SELECT FROM pg_roles WHERE rolname = $1', [name])).toEqual([])
    }
  })

  it('treats a role that was dropped elsewhere as revoked', async () => {
    const backend = await bench.open()
    const issued = await backend.issue(request(['*']), signal())
    const name = String(issued.handle?.['username'])
    await bench.sql(`DROP OWNED BY ${name}; DROP ROLE ${name}`)
    await revoke(backend, issued)
  })

  it('finds that another attempt dropped the role just before it became the role', async () => {
    const backend = await bench.open()
    const issued = await backend.issue(request(['*']), signal())
    const name = String(issued.handle?.['username'])
    const session = await login(issued)
    const over = ended(session)
    const turn = new pg.Client({ connectionString: bench.database.url })
    await turn.connect()
    await turn.query('SELECT pg_advisory_lock(1)')
    const { host } = createTestHost('db')
    const connections = await connect(bench.settings(), host)
    const waiting: Connections = {
      ...connections,
      // The same statements, with a wait where another attempt may be faster. Opening a table makes the drop visible.
      transact: (database, stop, statements) =>
        connections.transact(
          database,
          stop,
          statements.map((text) =>
            text.replace(
              /(?=EXECUTE format\('+SET LOCAL ROLE)/,
              'PERFORM pg_advisory_xact_lock(1); PERFORM FROM pg_cast; ',
            ),
          ),
        ),
    }
    const upstream = createUpstream(bench.settings(), host, { issuing: connections, revoking: waiting })
    const revoking = revokeRole(upstream, name, signal())
    while (
      (await bench.sql("SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")).length === 0
    );
    await bench.sql(`DROP OWNED BY ${name}; DROP ROLE ${name}`)
    await turn.end()
    await revoking
    await connections[Symbol.asyncDispose]()
    session.end()
    await over
  })

  it('waits for an issue whose reply was lost, and holds up no other', async () => {
    const backend = await bench.open()
    const asked = request([])
    const handle = backend.recover?.(asked.credentialId) ?? {}
    const late = new pg.Client({ connectionString: bench.database.url })
    await late.connect()
    await late.query(`BEGIN; CREATE ROLE ${handle['username']} LOGIN`)
    const revoking = revoke(backend, { handle })
    const waits = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"
    while ((await bench.sql(waits)).length === 0);
    const other = await backend.issue(request(['*']), signal())
    await revoke(backend, other)
    await late.query('COMMIT')
    await late.end()
    await revoking
    expect(await bench.sql('SELECT FROM pg_roles WHERE rolname = $1', [handle['username']])).toEqual([])
  })

  it.each(['functions', 'direct'])(
    'works without superuser rights, for many at the same time, by %s',
    async (way) => {
      const admin = way === 'functions' ? await bench.setUp() : await bench.createRole('CREATEROLE')
      if (way === 'direct') await bench.sql(`GRANT SELECT ON orders TO "${admin.username}" WITH GRANT OPTION`)
      const backend = await bench.open(admin)
      await backend.check(signal())
      const all = await Promise.all(Array.from({ length: 16 }, () => backend.issue(request(['*']), signal())))
      const sessions = await Promise.all(all.slice(0, 8).map((issued) => login(issued)))
      const over = Promise.all(sessions.map(ended))
      await Promise.all(all.map((issued) => revoke(backend, issued)))
      await over
      expect(await Promise.all(all.map(exists))).toEqual(all.map(() => false))
    },
  )
})
