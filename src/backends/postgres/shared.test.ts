import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bench, ended, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import type { Backend, Issued } from '../kind.ts'

let bench: Bench
let admin: { username: string; password: string }
beforeAll(async () => {
  bench = await openBench()
  admin = await bench.createRole('CREATEROLE')
})
afterAll(() => bench?.close())

const nameOf = (issued: Issued) => String(issued.handle?.['username'])

async function revoke(backend: Backend, issued: Issued): Promise<void> {
  await backend.revoke?.(issued.handle ?? {}, signal())
  expect(await bench.sql('SELECT FROM pg_roles WHERE rolname = $1', [nameOf(issued)])).toEqual([])
}

const preparedBy = (issued: Issued) =>
  bench.sql('SELECT FROM pg_prepared_xacts WHERE owner = $1::name', [nameOf(issued)])

/** Until PostgreSQL 14 a role may grant itself to others. Returns whether this one could. */
async function share(client: pg.Client, text: string): Promise<boolean> {
  const outcome = await client.query(text).catch((error: unknown) => error)
  if (bench.server.version < 150_000) expect(outcome).not.toBeInstanceOf(Error)
  else expect(outcome).toMatchObject({ code: '42501' })
  return bench.server.version < 150_000
}

/** Where the server permits prepared transactions. */
async function prepare(client: pg.Client, issued: Issued): Promise<void> {
  const [{ max } = {}] = await bench.sql("SELECT current_setting('max_prepared_transactions') AS max")
  const prepared = await client.query(`PREPARE TRANSACTION '${nameOf(issued)}'`).catch((error) => error)
  if (max === '0') expect(prepared).toMatchObject({ code: '55000' })
  else expect(await preparedBy(issued)).toHaveLength(1)
}

const admins = [
  ['a superuser', () => ({})],
  ['a role with CREATEROLE', () => admin],
] as const

describe.each(admins)('revoking, by %s, a role that its holder shares', (_, as) => {
  it("ends another credential's session that holds its row, and no session that does not", async () => {
    const backend = await bench.open(as())
    const [mine, other] = [
      await backend.issue(request([]), signal()),
      await backend.issue(request([]), signal()),
    ]
    const [owner, member, idle] = [await login(mine), await login(other), await login(other)]
    const shared = await share(owner, `GRANT ${nameOf(mine)} TO ${nameOf(other)}`)
    const over = shared ? ended(member) : undefined
    if (shared) {
      await member.query(`SET ROLE ${nameOf(mine)}; BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'another'`)
    }
    await revoke(backend, mine)
    await over
    await idle.query('SELECT 1')
    await revoke(backend, other)
  })

  it('rolls back a prepared transaction of another credential that holds its row', async () => {
    const backend = await bench.open(as())
    const [mine, other] = [
      await backend.issue(request([]), signal()),
      await backend.issue(request([]), signal()),
    ]
    const [owner, member] = [await login(mine), await login(other)]
    if (await share(owner, `GRANT ${nameOf(mine)} TO ${nameOf(other)}`)) {
      await member.query(`SET ROLE ${nameOf(mine)}; BEGIN; ALTER ROLE CURRENT_USER PASSWORD 'another'`)
      await member.query('RESET ROLE')
      await prepare(member, other)
    }
    await revoke(backend, mine)
    expect(await preparedBy(other)).toEqual([])
    await revoke(backend, other)
  })

  it('rolls back a prepared transaction of the holder that keeps Mayfly from joining the role', async () => {
    const backend = await bench.open(as())
    const [mine, other] = [
      await backend.issue(request([]), signal()),
      await backend.issue(request([]), signal()),
    ]
    const to = 'username' in as() ? admin.username : bench.server.username
    for (const issued of [mine, other]) {
      const client = await login(issued)
      if (await share(client, `BEGIN; GRANT ${nameOf(issued)} TO "${to}"`)) await prepare(client, issued)
      await client.end()
    }
    await revoke(backend, mine)
    expect(await preparedBy(mine)).toEqual([])
    await revoke(backend, other)
    const left = 'SELECT FROM pg_roles WHERE starts_with(rolname, $1)'
    expect(await bench.sql(left, [nameOf(mine)])).toEqual([])
    expect(await bench.sql(left, [nameOf(other)])).toEqual([])
  })

  it('ends a session that keeps Mayfly from joining the role, and holds up issuing', async () => {
    const backend = await bench.open(as())
    const issued = await backend.issue(request([]), signal())
    const client = await login(issued)
    const over = ended(client)
    await client.query('BEGIN; SELECT pg_advisory_xact_lock(120265298308217)')
    const to = 'username' in as() ? admin.username : bench.server.username
    if (!(await share(client, `GRANT ${nameOf(issued)} TO "${to}"`))) {
      await client.query('ROLLBACK; SELECT pg_advisory_lock(120265298308217)')
    }
    const fresh = await backend.issue(request([]), AbortSignal.timeout(4_000))
    await over
    const again = await login(issued)
    await share(again, `BEGIN; GRANT ${nameOf(issued)} TO "${to}"`)
    await revoke(backend, issued)
    await revoke(backend, fresh)
  })
})

it('ends no session of Mayfly, even if its own role has the prefix of credentials', async () => {
  const backend = await bench.open(
    await bench.createRole('CREATEROLE', `mf_${randomBytes(8).toString('hex')}`),
  )
  const other = new pg.Client({ connectionString: bench.database.url })
  await other.connect()
  await other.query('BEGIN; SELECT pg_advisory_xact_lock(120265298308217)')
  let refused = 0
  const issuing = [1, 2].map(() => backend.issue(request([]), signal()))
  for (const one of issuing) one.catch(() => refused++)
  // A second wait means that the holder of the lock was looked up.
  const again =
    "SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_advisory_xact_lock(120265298308217)' AND wait_event_type = 'Lock'"
  while (refused === 0 && (await bench.sql(again)).length < 2);
  await other.query('COMMIT')
  for (const issued of await Promise.all(issuing)) await revoke(backend, issued)
  await other.end()
})

it.each(admins)(
  'issues, for %s, also while a credential has tables of its own where others are granted',
  async (_, as) => {
    const name = `it's "mixed" \\ ${'username' in as() ? 'a' : 'b'}`
    const schema = pg.escapeIdentifier(name)
    await bench.sql(
      `CREATE SCHEMA ${schema}; GRANT CREATE, USAGE ON SCHEMA ${schema} TO PUBLIC; CREATE TABLE ${schema}."an ""order" (id serial);
     GRANT ALL ON ALL TABLES IN SCHEMA ${schema} TO "${admin.username}" WITH GRANT OPTION;
     GRANT ALL ON ALL SEQUENCES IN SCHEMA ${schema} TO "${admin.username}" WITH GRANT OPTION`,
    )
    const backend = await bench.open({ ...as(), schemas: [name], grant: 'read-write' })
    const first = await backend.issue(request(['*']), signal())
    const owner = await login(first)
    await owner.query(`CREATE TABLE ${schema}.mine (id serial)`)
    await owner.query(
      `BEGIN; GRANT SELECT ON ${schema}.mine TO PUBLIC; GRANT SELECT ON ${schema}.mine_id_seq TO PUBLIC`,
    )
    await backend.check(signal())
    const second = await backend.issue(request(['*']), AbortSignal.timeout(4_000))
    const client = await login(second)
    await client.query(`INSERT INTO ${schema}."an ""order" DEFAULT VALUES`)
    await expect(client.query(`INSERT INTO ${schema}.mine DEFAULT VALUES`)).rejects.toMatchObject({
      code: '42501',
    })
    await revoke(backend, first)
    await revoke(backend, second)
  },
)
