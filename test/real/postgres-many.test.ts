import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { expect, it } from 'vitest'
import { MAIN } from '../cli/support.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { describePostgresVersions } from '../support/describe-postgres.ts'
import { LONG } from '../support/long.ts'
import { startPostgresVersion } from '../support/postgres-versions.ts'
import { run } from '../support/run-program.ts'

const COUNT = LONG ? 20_000 : 100
const CLIENTS = 8
const CATALOGUES = ['pg_authid', 'pg_auth_members', 'pg_shdepend', 'pg_class']

interface World {
  readonly app: TestApp
  readonly root: pg.Client
  close(): Promise<void>
}

/** Mayfly's login: `functions` may only execute what the superuser's script installs, `direct` may create roles. */
const WAYS = ['functions', 'direct'] as const
type Way = (typeof WAYS)[number]

/** A server of its own, so that the catalogues hold nothing of other tests. */
async function open(major: number, way: Way): Promise<World> {
  const server = await startPostgresVersion(major)
  const database = await server.createDatabase()
  const root = new pg.Client({ connectionString: database.url })
  await root.connect()
  await root.query("CREATE TABLE fruit (name text); CREATE ROLE mayfly LOGIN PASSWORD 'plum'")
  if (way === 'direct') {
    await root.query(
      `ALTER ROLE mayfly CREATEROLE; GRANT CREATE ON DATABASE ${database.name} TO mayfly;
       GRANT USAGE ON SCHEMA public TO mayfly WITH GRANT OPTION;
       GRANT SELECT ON ALL TABLES IN SCHEMA public TO mayfly WITH GRANT OPTION`,
    )
  } else {
    const env = { PATH: process.env['PATH'] ?? '' }
    const named = ['--database', database.name, '--username', 'mayfly']
    const script = await run([process.execPath, MAIN, 'backend', 'setup-sql', 'postgres', ...named], env)
    const set = await run(['psql', '-X', '-q', '-d', database.url], env, { stdin: script.stdout })
    expect([script.code, set.code, set.stderr]).toEqual([0, 0, ''])
  }
  const app = await startApp({ jobs: true, env: { MAYFLY_LIMITS_MAX_ACTIVE_PER_AGENT: String(COUNT) } })
  const { host, port } = server
  const named = { host, port, database: database.name, username: 'mayfly', password: 'plum' }
  const config = { ...named, local: true, scram_iterations: 256 }
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'db', config })
  expect(reply).toMatchObject({ status: 200 })
  const close = async () => {
    await app.close()
    await root.end()
    await server.stop()
  }
  return { app, root, close }
}

async function issueAll(agent: NewAgent): Promise<void> {
  let left = COUNT
  const client = async () => {
    while (left > 0) {
      left -= 1
      const reply = await agent.client.post('/v1/credentials/db', { ttl: '12h' })
      if (reply.status !== 200) throw new Error(reply.text)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

async function countRoles({ root }: World): Promise<number> {
  const { rows } = await root.query("SELECT count(*)::int AS found FROM pg_authid WHERE rolname ~ '^mf_'")
  return rows[0]?.found
}

/** In kB, by name. */
async function sizesOf({ root }: World): Promise<Record<string, number>> {
  const text =
    'SELECT relname, pg_total_relation_size(oid) / 1024 AS kb FROM pg_class WHERE relname = ANY ($1)'
  const { rows } = await root.query(text, [CATALOGUES])
  return Object.fromEntries(rows.map(({ relname, kb }) => [relname, Number(kb)]))
}

/** What the audit says of credentials: how often each action. */
function countActions({ app }: World): Record<string, number> {
  const store = new DatabaseSync(join(app.directory, 'mayfly.db'), { readOnly: true })
  const text = "SELECT action, count(*) AS found FROM audit WHERE action LIKE 'credential.%' GROUP BY action"
  const rows = store.prepare(text).all()
  store.close()
  return Object.fromEntries(rows.map(({ action, found }) => [String(action), Number(found)]))
}

// Before and after PostgreSQL 16, where roles of others became a matter of ADMIN; a sample on the newest alone.
const MAJORS = LONG ? [15, 18] : [18]

describePostgresVersions((major) => {
  it.each(WAYS)(
    `ends ${COUNT} credentials of one agent that is deleted, and leaves nothing behind: %s`,
    { timeout: LONG ? 3_600_000 : 120_000 },
    async (way) => {
      const world = await open(major, way)
      try {
        const logged = world.app.logged().split('\n').length - 1
        const before = await sizesOf(world)
        const agent = await world.app.newAgent({ scopes: ['db'] })
        await issueAll(agent)
        expect(await countRoles(world)).toBe(COUNT)
        const living = await sizesOf(world)
        expect((await world.app.admin('DELETE', `/v1/admin/agents/${agent.name}`)).status).toBe(204)
        while ((await countRoles(world)) > 0) await pause(100)
        const after = await sizesOf(world)
        for (const catalogue of CATALOGUES) await world.root.query(`VACUUM ${catalogue}`)
        const vacuumed = await sizesOf(world)
        if (LONG) console.table({ before, [`${COUNT} credentials`]: living, after, vacuumed })
        await expect.poll(() => countActions(world)['credential.settled']).toBe(COUNT)
        expect(countActions(world)).toEqual({
          'credential.requested': COUNT,
          'credential.issued': COUNT,
          'credential.revoked': COUNT,
          'credential.settled': COUNT,
        })
        const faults = world.app
          .logged()
          .split('\n')
          .slice(logged)
          .filter((line) => /"level":"(warn|error|fatal)"/.test(line))
        expect(faults).toEqual([])
      } finally {
        await world.close()
      }
    },
  )
}, MAJORS)
