import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startOwnPostgres } from '../../../test/support/postgres.ts'
import { type Bench, ended, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import type { Backend, Issued } from '../kind.ts'
import type { Config } from './config.ts'

let bench: Bench
let ways: Record<string, Partial<Config>>
beforeAll(async () => {
  bench = await openBench()
  await bench.sql(
    `CREATE SCHEMA built; GRANT CREATE, USAGE ON SCHEMA built TO PUBLIC; CREATE TABLE built.orders (id int);
     INSERT INTO built.orders VALUES (42)`,
  )
  const direct = await bench.createRole('CREATEROLE')
  await bench.sql(`GRANT SELECT ON built.orders TO "${direct.username}" WITH GRANT OPTION`)
  ways = { direct, functions: await bench.setUp({ schemas: ['built'] }) }
})
afterAll(() => bench?.close())

async function revoke(backend: Backend, issued: Issued): Promise<void> {
  await backend.revoke?.(issued.handle ?? {}, signal())
  const [role] = await bench.sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [issued.handle?.['username']])
  expect(role).toBeUndefined()
}

const issueTo = (backend: Backend, scopes: string[] = []) => backend.issue(request(scopes), signal())

/** The holder of a credential knows our source and wants to keep the credential. */
describe.each(['functions', 'direct'])('revoking against the resistance of the holder, by %s', (way) => {
  const open = () => bench.open({ ...ways[way], schemas: ['built'] })

  it("ends a session that holds a lock on the role's own row", async () => {
    const backend = await open()
    const issued = await issueTo(backend)
    const client = await login(issued)
    await client.query("BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'another'")
    const over = ended(client)
    await revoke(backend, issued)
    await over
  })

  it('ends a session that does not show its user yet, and none of others', async () => {
    const backend = await open()
    const [mine, other] = [await issueTo(backend, ['*']), await issueTo(backend)]
    const hidden = [mine, other].map((issued) => login(issued, undefined, '-c post_auth_delay=3'))
    for (const one of hidden) one.catch(() => undefined)
    const starting = `SELECT FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
      WHERE l.locktype = 'virtualxid' AND a.usesysid IS NULL AND coalesce(a.backend_type, 'client backend') = 'client backend'`
    while ((await bench.sql(starting)).length < 2);
    await revoke(backend, mine)
    // The server may still greet it before it ends.
    const read = hidden[0]?.then((client) => client.query('SELECT * FROM built.orders'))
    await expect(read).rejects.toThrow()
    await (await hidden[1])?.query('SELECT 1')
    await revoke(backend, other)
  })

  it('takes the membership away although others have built on what the role owns', async () => {
    const backend = await open()
    const [mine, other] = [await issueTo(backend, ['*']), await issueTo(backend)]
    const [owner, reader] = [await login(mine), await login(other)]
    await owner.query(
      `CREATE TABLE built.base (id int); GRANT SELECT ON built.base TO PUBLIC; CREATE FUNCTION built.peek() RETURNS
       SETOF int LANGUAGE sql SECURITY DEFINER AS 'SELECT id FROM built.orders'`,
    )
    await reader.query('CREATE VIEW built.upon AS SELECT id FROM built.base')
    const peek = () => reader.query('SELECT * FROM built.peek()')
    expect((await peek()).rows).toEqual([{ peek: 42 }])
    await expect(revoke(backend, mine)).rejects.toMatchObject({ fault: 'denied' })
    await expect(peek()).rejects.toMatchObject({ code: '42501' })
    await revoke(backend, other)
    await revoke(backend, mine)
  })

  it('does not make others wait while the objects to drop are in use', async () => {
    const backend = await open()
    const [mine, other] = [await issueTo(backend, ['*']), await issueTo(backend)]
    const [owner, reader] = [await login(mine), await login(other)]
    const table = `built.of_${mine.handle?.['username']}`
    await owner.query(`CREATE TABLE ${table} (); GRANT SELECT ON ${table} TO PUBLIC`)
    await reader.query(`BEGIN; SELECT FROM ${table}`)
    const refused = revoke(backend, mine).catch((error: unknown) => error)
    const waits =
      "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation::regclass::text ~ 'of_mf'"
    while ((await bench.sql(waits)).length === 0);
    const fresh = await backend.issue(request([]), AbortSignal.timeout(4_000))
    expect(await refused).toMatchObject({ fault: 'denied' })
    await reader.end()
    for (const issued of [mine, other, fresh]) await revoke(backend, issued)
  })

  it('ends another credential that grants it something in a transaction left open', async () => {
    const backend = await open()
    const [mine, other] = [await issueTo(backend), await issueTo(backend)]
    const granter = await login(other)
    await granter.query(
      `BEGIN; SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO ${mine.handle?.['username']}`,
    )
    const over = ended(granter)
    await revoke(backend, mine)
    await over
    await revoke(backend, other)
  })
})

describe('revoking on a server of its own', () => {
  let own: Bench
  beforeAll(async () => {
    const server = await startOwnPostgres()
    own = await openBench(server)
    await own.sql('ALTER SYSTEM SET max_connections = 16')
    await own.sql('ALTER SYSTEM SET max_prepared_transactions = 8')
    await server.restart()
  })
  afterAll(() => own?.close())
  const roles = (issued: Issued) =>
    own.sql('SELECT FROM pg_roles WHERE rolname = $1', [issued.handle?.['username']])

  it('succeeds although the holder has taken every connection, long after Mayfly last used one', async () => {
    const backend = await own.open(await own.createRole('CREATEROLE'))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const issued = await issueTo(backend)
    await vi.advanceTimersByTimeAsync(3_600_000)
    vi.useRealTimers()
    const taken = []
    for (;;) {
      const client = await login(issued).catch((error: { code: string }) => error.code)
      if (typeof client === 'string') {
        expect(client).toBe('53300')
        break
      }
      taken.push(ended(client))
    }
    await backend.revoke?.(issued.handle ?? {}, signal())
    await Promise.all(taken)
  })

  it('drops more tables and large objects than one transaction has locks for', async () => {
    await own.sql('CREATE SCHEMA much; GRANT CREATE, USAGE ON SCHEMA much TO PUBLIC')
    const backend = await own.open(await own.setUp())
    const issued = await issueTo(backend)
    const owner = await login(issued)
    for (let batch = 0; batch < 20; batch += 1) {
      await owner.query(
        `DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE TABLE much.many_%s_%s ()', ${batch}, i); END LOOP; END $$`,
      )
      await owner.query('SELECT count(lo_creat(-1)) FROM generate_series(1, 1000)')
    }
    await owner.end()
    await backend.revoke?.(issued.handle ?? {}, signal())
    expect(await roles(issued)).toEqual([])
    expect(await own.sql("SELECT FROM pg_class WHERE relname LIKE 'many%'")).toEqual([])
    expect(await own.sql('SELECT FROM pg_largeobject_metadata LIMIT 1')).toEqual([])
  })

  it.each(['functions', 'direct'])('rolls back what was prepared, in every database, by %s', async (way) => {
    const other = await own.createDatabase()
    const mayfly = way === 'functions' ? await own.setUp() : await own.createRole('CREATEROLE')
    const backend = await own.open(mayfly)
    const issued = await issueTo(backend)
    for (const [database, text] of [
      [own.database.name, "ALTER ROLE CURRENT_USER PASSWORD 'another'"],
      [other.name, 'SELECT lo_creat(-1)'],
    ] as const) {
      const client = await login(issued, database)
      await client.query(`BEGIN; ${text}; PREPARE TRANSACTION 'it''s \\ ${database}'`)
      await client.end()
    }
    expect(await own.sql('SELECT gid FROM pg_prepared_xacts')).toHaveLength(2)
    await backend.revoke?.(issued.handle ?? {}, signal())
    expect(await own.sql('SELECT gid FROM pg_prepared_xacts')).toEqual([])
    expect(await roles(issued)).toEqual([])
  })
})
