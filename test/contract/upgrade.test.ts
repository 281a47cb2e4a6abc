import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { COLUMNS } from '../../src/store/schema/columns.ts'
import { SCHEMA_VERSION } from '../../src/store/schema/migrate.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { newHome, runCli } from '../cli/support.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { entry, exchange, template, workload } from '../support/keyless.ts'
import { makeOldStore, type OldAgent } from '../support/old-store.ts'
import { startPostgres } from '../support/postgres.ts'
import { DIALECTS } from '../support/store.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})
const temporary = async (): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-upgrade-'))
  ends.push(() => rm(directory, { recursive: true, force: true }))
  return directory
}

async function emptyDatabase(): Promise<string> {
  const server = await startPostgres()
  const database = await server.createDatabase()
  ends.push(async () => {
    await database.drop()
    await server.stop()
  })
  return database.url
}

/** A store that an older version left, whose default issuer was a URL with `localhost`. */
async function oldStore(dialect: (typeof DIALECTS)[number], schema: number) {
  const directory = await temporary()
  const databaseUrl = dialect === 'postgres' ? await emptyDatabase() : undefined
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const agent = await makeOldStore({ directory, databaseUrl, schema, issuer })
  return { directory, databaseUrl, port, issuer, agent }
}
type OldStore = Awaited<ReturnType<typeof oldStore>>

/** Today's server on it. */
async function upgrade(store: OldStore) {
  const { directory, databaseUrl, port, issuer, agent } = store
  const argv = { dataDir: directory, listen: `127.0.0.1:${port}`, issuer: undefined }
  const app = await startApp({ ...(databaseUrl === undefined ? {} : { databaseUrl }), argv })
  ends.push(() => app.close())
  return { app, agent, issuer }
}

type Rows = Readonly<Record<string, unknown>>[]

async function withSql<T>(
  { directory, databaseUrl }: OldStore,
  work: (read: (sql: string) => Promise<Rows>) => Promise<T>,
): Promise<T> {
  if (databaseUrl === undefined) {
    const db = new DatabaseSync(join(directory, 'mayfly.db'), { readOnly: true })
    return work(async (sql) => db.prepare(sql).all()).finally(() => db.close())
  }
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  return work(async (sql) => (await client.query(sql)).rows).finally(() => client.end())
}

/** The columns of each table that has rows. */
const shapeOf = (store: OldStore) =>
  withSql(store, async (read) => {
    const shape = new Map<string, string[]>()
    for (const table of Object.keys(COLUMNS)) {
      const [row] = await read(`SELECT * FROM ${table} LIMIT 1`).catch(() => [])
      if (row !== undefined) shape.set(table, Object.keys(row))
    }
    return shape
  })

const rowsOf = (store: OldStore, shape: ReadonlyMap<string, readonly string[]>) =>
  withSql(store, async (read) => {
    const rows: Record<string, Rows> = {}
    for (const [table, columns] of shape)
      rows[table] = (await read(`SELECT ${columns.join(', ')} FROM ${table}`)).toSorted((one, other) =>
        JSON.stringify(one) < JSON.stringify(other) ? -1 : 1,
      )
    return rows
  })

/** The files of the command, as it wrote them at the enrollment. */
async function enrolledHome(agent: OldAgent, server: string, issuer: string) {
  const { home, env } = await newHome()
  ends.push(() => rm(home, { recursive: true, force: true }))
  const kept = join(home, 'config/mayfly')
  await mkdir(join(kept, 'secrets'), { recursive: true, mode: 0o700 })
  const write = (path: string, value: object) =>
    writeFile(join(kept, path), JSON.stringify(value), { mode: 0o600 })
  const client_id = agent.clientId
  const login = 'private_key_jwt'
  const profile = {
    ...{ server, login, secret_in: 'file', issuer, client_id },
    agent: { id: agent.id, name: agent.name },
    server_keys: [agent.serverKey],
  }
  await write('config.json', { current: 'default', profiles: { default: profile } })
  await write('secrets/default.login.json', { kind: login, client_id, private_jwk: agent.privateJwk, server })
  return env
}

async function expectService(app: TestApp, agent: OldAgent, issuer: string) {
  const byToken = app.as(agent.token)
  expect((await byToken.get('/v1/status')).body).toMatchObject({ id: agent.id, scopes: ['demo', 'extra'] })
  expect((await byToken.post('/v1/credentials/demo')).status).toBe(200)
  const env = await enrolledHome(agent, issuer.replace('localhost', '127.0.0.1'), issuer)
  const run = (...argv: string[]) => runCli(argv, { env })
  expect(await run('get', 'demo')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/) })
  expect(await run('status', '--json')).toMatchObject({ code: 0, stderr: '' })
}

/** What was issued and begun before goes on, and ends as anything that is new. */
async function expectWork(app: TestApp, { token, held }: OldAgent, schema: number) {
  const byToken = app.as(token)
  const statusOf = async (id: string) => (await byToken.get(`/api/v1/credentials/${id}`)).body.status
  expect(await statusOf(held.ended)).toBe('revoked')
  expect(await statusOf(held.credential)).toBe('active')
  expect((await byToken.delete(`/v1/active/${held.credential}`)).status).toBe(204)
  expect(await statusOf(held.credential)).toBe('revoked')
  const hadRuns = schema >= 14
  const run = hadRuns ? held.run : (await byToken.post('/v1/runs', { purpose: 'new' })).body.id
  const credential = hadRuns
    ? held.credentialOfRun
    : (await byToken.post('/v1/credentials/demo', { run })).body.id
  expect((await byToken.post(`/v1/runs/${run}/heartbeat`)).status).toBe(200)
  expect(await statusOf(credential)).toBe('active')
  await expectProxied(app, token, run)
  expect((await byToken.delete(`/v1/runs/${run}`)).status).toBe(204)
  expect(await statusOf(credential)).toBe('revoked')
}

/** What came with schema 16, for the backend and the run of before. */
async function expectProxied(app: TestApp, token: string, run: string) {
  const byToken = app.as(token)
  const uses = { deny: [{ methods: ['DELETE'], path: '/**' }] }
  expect((await app.local.put('/v1/admin/backends/demo', { uses })).body.uses).toEqual(uses)
  expect((await byToken.post('/v1/credentials/demo', { run, uses: true })).body.uses).toEqual(
    expect.any(Array),
  )
  const nothing = { method: null, path: null, status: null, reason: null, backend: null }
  const line = {
    ...{ ...nothing, credential_id: null, placeholder: null, protocol: 'tunnel', decision: 'tunnelled' },
    ...{ at: '2026-11-21T10:15:00.000Z', authority: 'example.com' },
    ...{ bytes_sent: 0, bytes_received: 0, duration_ms: 0, redacted: 0 },
  }
  const body = { batch: '06dzw5k9q2v6x1m8t3c7n4p0hb', requests: [line] }
  expect((await byToken.post(`/v1/runs/${run}/requests`, body)).status).toBe(204)
  expect((await byToken.get(`/v1/runs/${run}/requests`)).body).toEqual([line])
}

async function expectPeople(app: TestApp, { held }: OldAgent, schema: number) {
  const pending = (await app.local.get('/v1/admin/pending')).body as { id: string }[]
  expect(pending.map(({ id }) => id)).toEqual([held.enrollment])
  // Their provider gave this session the right to read agents, and no other.
  const byOperator = app.as(held.operatorToken)
  expect((await byOperator.get('/v1/admin/agents')).status).toBe(schema >= 13 ? 200 : 401)
  expect((await byOperator.get('/v1/admin/audit')).status).toBe(schema >= 13 ? 403 : 401)
}

/** An old agent keeps its name, and others come without a secret. */
async function expectKeyless(app: TestApp, { name }: OldAgent) {
  const entries = [
    entry('jobs', { agent: template('vet{job}'), scopes: ['demo'] }),
    entry('same', { audience: 'same', agent: template(name), scopes: ['demo'] }),
  ]
  app.core.identities.setTrusted({ identities: entries, platforms: [] })
  const login = await exchange(app, workload(app, { job: '-new' }))
  const byToken = app.as(login.body.access_token)
  expect((await byToken.get('/v1/status')).body).toMatchObject({ name: 'vet-new', scopes: ['demo'] })
  expect((await byToken.post('/v1/credentials/demo')).status).toBe(200)
  for (const token of [workload(app, { job: name.replace(/^vet/, '') }), workload(app, { aud: 'same' })])
    expect(await exchange(app, token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  // A denial is written after its answer.
  const refused = async () => (await app.local.get('/v1/admin/audit?action=token.refused')).body
  await expect
    .poll(refused)
    .toMatchObject([{ details: { reason: 'name_taken' } }, { details: { reason: 'name_taken' } }])
}

describe.each(DIALECTS)('a %s store of an older version', (dialect) => {
  test.each([3, 2, 1])('%i schemas back keeps every row', async (back) => {
    const schema = SCHEMA_VERSION - back
    const store = await oldStore(dialect, schema)
    const shape = await shapeOf(store)
    const before = await rowsOf(store, shape)
    const had = ['credentials', 'operators', 'sessions', ...(schema >= 14 ? ['runs', 'run_beats'] : [])]
    expect(Object.keys(before)).toEqual(expect.arrayContaining(had))
    const { directory, databaseUrl } = store
    const engine = databaseUrl === undefined ? openSqlite({ directory }) : openPostgres({ url: databaseUrl })
    await (await engine).close()
    expect(await rowsOf(store, shape)).toEqual(before)
  })

  test.each([3, 2, 1])('%i schemas back serves its agents, runs, credentials and people', async (back) => {
    const schema = SCHEMA_VERSION - back
    const { app, agent, issuer } = await upgrade(await oldStore(dialect, schema))
    expect((await app.as(undefined).get('/.well-known/openid-configuration')).body.issuer).toBe(app.url)
    await expectService(app, agent, issuer)
    await expectWork(app, agent, schema)
    await expectPeople(app, agent, schema)
    await expectKeyless(app, agent)
  })
})
