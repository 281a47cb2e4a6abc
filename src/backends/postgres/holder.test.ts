import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { LONG } from '../../../test/support/long.ts'
import { startOwnPostgres } from '../../../test/support/postgres.ts'
import { type Bench, ended, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { startPostgresProxy } from '../../../test/support/postgres-proxy.ts'
import type { Backend, Issued } from '../kind.ts'

let bench: Bench
let admin: { username: string; password: string }
beforeAll(async () => {
  bench = await openBench()
  admin = await bench.createRole('CREATEROLE')
  await bench.sql(
    `CREATE SCHEMA built; GRANT CREATE, USAGE ON SCHEMA built TO PUBLIC; CREATE TABLE built.orders (id int);
     INSERT INTO built.orders VALUES (42); GRANT SELECT ON built.orders TO "${admin.username}" WITH GRANT OPTION`,
  )
})
afterAll(() => bench?.close())

async function revoke(backend: Backend, issued: Issued): Promise<void> {
  await backend.revoke?.(issued.handle ?? {}, signal())
  const [role] = await bench.sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [issued.handle?.['username']])
  expect(role).toBeUndefined()
}

/** npm test runs the first case of each table. */
const sampleOf = <T>(cases: readonly T[]) => (LONG ? cases : cases.slice(0, 1))
const ADMINS = sampleOf(['createrole', 'superuser'])
const ENDS = sampleOf(['reassigned', 'dropped'])

const admins = [
  ['a superuser', () => ({})],
  ['a role with CREATEROLE', () => admin],
] as const

/** The holder of a credential knows our source and wants to keep the credential. */
describe.each(sampleOf([admins[1], admins[0]]))(
  'revoking, by %s, against the resistance of the holder',
  (_, as) => {
    it('ends a session that holds the advisory lock, and those that wait for it', async () => {
      const backend = await bench.open(as())
      const issued = await backend.issue(request([]), signal())
      const [holder, waiter] = [await login(issued), await login(issued)]
      await holder.query('SELECT pg_advisory_lock(120265298308217)')
      const waiting = waiter.query('SELECT pg_advisory_lock(120265298308217)').catch(() => undefined)
      const over = Promise.all([ended(holder), ended(waiter)])
      await revoke(backend, issued)
      await over
      await waiting
    })

    it('is not held up, nor is issuing, by another credential that holds that lock', async () => {
      const backend = await bench.open(as())
      const [hostile, mine] = [
        await backend.issue(request([]), signal()),
        await backend.issue(request([]), signal()),
      ]
      const holder = await login(hostile)
      await holder.query('SELECT pg_advisory_lock_shared(120265298308217)')
      const over = ended(holder)
      const fresh = await backend.issue(request([]), signal())
      await over
      await revoke(backend, mine)
      await revoke(backend, fresh)
      await revoke(backend, hostile)
    })

    it('does not look up the holder of the lock while the wait is short', async () => {
      const proxy = await startPostgresProxy(bench.server)
      const backend = await bench.open({ ...as(), port: proxy.port })
      // Not a credential: it stands for another change of ours.
      const other = new pg.Client({ connectionString: bench.database.url })
      await other.connect()
      await other.query('BEGIN; SELECT pg_advisory_xact_lock(120265298308217)')
      const issuing = backend.issue(request([]), signal())
      const waits = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
      while ((await other.query(waits)).rowCount === 0);
      await other.query('COMMIT')
      await revoke(backend, await issuing)
      expect(proxy.sent()).not.toContain('pg_locks')
      await other.end()
      await backend[Symbol.asyncDispose]()
      await proxy.close()
    })

    it("ends a session that holds a lock on the role's own row", async () => {
      const backend = await bench.open(as())
      const issued = await backend.issue(request([]), signal())
      const client = await login(issued)
      await client.query("BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'another'")
      const over = ended(client)
      await revoke(backend, issued)
      await over
    })

    it('revokes grants although others have built on what the role owns', async () => {
      const backend = await bench.open({ ...as(), schemas: ['built'] })
      const [mine, other] = [
        await backend.issue(request(['*']), signal()),
        await backend.issue(request([]), signal()),
      ]
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

    it('revokes grants although another role has granted it something', async () => {
      const backend = await bench.open({ ...as(), schemas: ['built'] })
      const [mine, other] = [
        await backend.issue(request(['*']), signal()),
        await backend.issue(request([]), signal()),
      ]
      const name = mine.handle?.['username']
      const granter = await login(other)
      await granter.query(`SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO ${name}`)
      const outcome = await revoke(backend, mine).catch((error: unknown) => error)
      if (outcome !== undefined) {
        // Only a superuser may take it away from under its owner.
        expect(outcome).toMatchObject({ fault: 'denied' })
        const [may] = await bench.sql(`SELECT has_table_privilege($1, 'built.orders', 'SELECT') AS may`, [
          name,
        ])
        expect(may).toEqual({ may: false })
      }
      await revoke(backend, other)
      await revoke(backend, mine)
    })

    it('does not make others wait while the objects to drop are in use', async () => {
      const backend = await bench.open({ ...as(), schemas: ['built'] })
      const [one, two, other] = [
        await backend.issue(request(['*']), signal()),
        await backend.issue(request(['*']), signal()),
        await backend.issue(request([]), signal()),
      ]
      const reader = await login(other)
      await reader.query('BEGIN')
      for (const issued of [one, two]) {
        const table = `built.of_${issued.handle?.['username']}`
        const owner = await login(issued)
        await owner.query(`CREATE TABLE ${table} (); GRANT SELECT ON ${table} TO PUBLIC`)
        await owner.end()
        await reader.query(`SELECT FROM ${table}`)
      }
      const refused = [one, two].map((issued) => revoke(backend, issued).catch((error: unknown) => error))
      const waits =
        "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation' AND relation::regclass::text ~ 'of_mf'"
      while ((await bench.sql(waits)).length === 0);
      // Less than one wait for the advisory lock, by PostgreSQL's clock.
      const fresh = await backend.issue(request([]), AbortSignal.timeout(4_000))
      for (const outcome of await Promise.all(refused)) expect(outcome).toMatchObject({ fault: 'denied' })
      await reader.end()
      for (const issued of [one, two, other, fresh]) await revoke(backend, issued)
    })

    it('drops more large objects than one transaction has locks for', async () => {
      const backend = await bench.open(as())
      const issued = await backend.issue(request([]), signal())
      const client = await login(issued)
      for (let made = 0; made < 30_000; made += 1_000) {
        await client.query('SELECT count(lo_creat(-1)) FROM generate_series(1, 1000)')
      }
      await client.end()
      await revoke(backend, issued)
      expect(await bench.sql('SELECT count(*)::int AS left FROM pg_largeobject_metadata')).toEqual([
        { left: 0 },
      ])
    })
  },
)

describe('revoking on a server of its own', () => {
  let own: Bench
  beforeAll(async () => {
    const server = await startOwnPostgres()
    own = await openBench(server)
    await own.sql('ALTER SYSTEM SET max_connections = 16')
    // It would drop what sessions have left behind.
    await own.sql('ALTER SYSTEM SET autovacuum = off')
    await server.restart()
  })
  afterAll(() => own?.close())

  it('succeeds although the holder has taken every connection, long after Mayfly last used one', async () => {
    const backend = await own.open(await own.createRole('CREATEROLE'))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const issued = await backend.issue(request([]), signal())
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

  /** More than one transaction has locks for, even to the session that made them when it ends. */
  async function makeTables(owner: pg.Client, named: string): Promise<void> {
    for (let batch = 0; batch < 20; batch += 1) {
      await owner.query(
        `DO $$ BEGIN FOR i IN 1..200 LOOP EXECUTE format('CREATE %s_%s_%s ()', '${named}', ${batch}, i); END LOOP; END $$`,
      )
    }
    await owner.end()
    const free = "SELECT FROM pg_stat_activity WHERE usename LIKE 'mf_%'"
    while ((await own.sql(free)).length > 0);
  }
  const tables = (like: string) => own.sql('SELECT FROM pg_class WHERE relname LIKE $1', [like])
  const roles = (issued: Issued) =>
    own.sql('SELECT FROM pg_roles WHERE rolname = $1', [issued.handle?.['username']])

  it.each(ADMINS)('drops more tables than one statement can (%s)', async (who) => {
    await own.sql('CREATE SCHEMA IF NOT EXISTS much; GRANT CREATE, USAGE ON SCHEMA much TO PUBLIC')
    const backend = await own.open(who === 'superuser' ? {} : await own.createRole('CREATEROLE'))
    const issued = await backend.issue(request([]), signal())
    await makeTables(await login(issued), 'TABLE much.many')
    await backend.revoke?.(issued.handle ?? {}, signal())
    expect(await roles(issued)).toEqual([])
    expect(await tables('many%')).toEqual([])
  })

  it.each(ENDS)('drops more temporary tables than one statement can (%s)', async (rest) => {
    const { username } = await own.createRole('')
    const backend = await own.open(rest === 'dropped' ? {} : { reassign_owned_to: username })
    const issued = await backend.issue(request([]), signal())
    await makeTables(await login(issued), 'TEMPORARY TABLE passing')
    expect(await tables('passing%')).toHaveLength(4_000)
    await backend.revoke?.(issued.handle ?? {}, signal())
    expect(await roles(issued)).toEqual([])
    expect(await tables('passing%')).toEqual([])
  })

  it('revokes grants although the role owns more than can be dropped at once or by name', async () => {
    await own.sql(
      'CREATE SCHEMA made; GRANT CREATE, USAGE ON SCHEMA made TO PUBLIC; CREATE TABLE made.orders ()',
    )
    const mayfly = await own.createRole('CREATEROLE')
    await own.sql(`GRANT SELECT ON made.orders TO "${mayfly.username}" WITH GRANT OPTION`)
    const backend = await own.open({ ...mayfly, schemas: ['made'] })
    const [mine, other] = [
      await backend.issue(request(['*']), signal()),
      await backend.issue(request([]), signal()),
    ]
    const [owner, reader] = [await login(mine), await login(other)]
    await owner.query(
      "CREATE FUNCTION made.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM made.orders'",
    )
    const peek = () => reader.query('SELECT made.peek()')
    expect((await peek()).rows).toEqual([{ peek: '0' }])
    await reader.end()
    await makeTables(owner, 'TEMPORARY TABLE passing')
    await expect(backend.revoke?.(mine.handle ?? {}, signal())).rejects.toMatchObject({
      fault: 'unavailable',
    })
    const again = await login(other)
    await expect(again.query('SELECT made.peek()')).rejects.toMatchObject({ code: '42501' })
    await again.end()
    // Which may name them.
    await (await own.open()).revoke?.(mine.handle ?? {}, signal())
    expect(await roles(mine)).toEqual([])
  })

  it('revokes more memberships than one reply can name, although others have built on what the role owns', async () => {
    await own.sql(
      `CREATE SCHEMA joint; GRANT CREATE, USAGE ON SCHEMA joint TO PUBLIC; DO $$ BEGIN FOR i IN 1..3700 LOOP
         EXECUTE format('CREATE ROLE %s_%s', repeat('x', 58), i); END LOOP; END $$`,
    )
    const backend = await own.open()
    const [mine, other] = [
      await backend.issue(request([]), signal()),
      await backend.issue(request([]), signal()),
    ]
    await own.sql(
      `DO $$ BEGIN FOR i IN 1..3700 LOOP
         EXECUTE format('GRANT %s_%s TO ${mine.handle?.['username']}', repeat('x', 58), i); END LOOP; END $$`,
    )
    const [owner, reader] = [await login(mine), await login(other)]
    await owner.query('CREATE TABLE joint.base (); GRANT SELECT ON joint.base TO PUBLIC')
    await reader.query('CREATE VIEW joint.upon AS SELECT FROM joint.base')
    await expect(backend.revoke?.(mine.handle ?? {}, signal())).rejects.toMatchObject({ fault: 'denied' })
    const joined = 'SELECT FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = $1'
    expect(await own.sql(joined, [mine.handle?.['username']])).toEqual([])
    await backend.revoke?.(other.handle ?? {}, signal())
    await backend.revoke?.(mine.handle ?? {}, signal())
  })
})
