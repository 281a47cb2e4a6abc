import { createServer } from 'node:http'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLookUp } from '../../src/egress/look-up.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const CLIENTS = 8

let postgres: TestPostgres
let database: TestDatabase
/** Beside Mayfly. */
let admin: pg.Client
let dns: DnsServer
let upstream: Upstream
let app: TestApp
let agent: NewAgent

interface Upstream {
  readonly port: number
  close(): void
}

/** As much of Doppler as adding a backend, issuing and revoking need. */
async function startUpstream(): Promise<Upstream> {
  let made = 0
  const server = createServer((request, response) => {
    request.resume()
    made += 1
    const token = {
      slug: `slug-${made}`,
      key: `dp.st.key-${made}`,
      expires_at: new Date(Date.now() + 3_600_000),
    }
    response.setHeader('Content-Type', 'application/json')
    const others = { success: true, tokens: [], workplace: { slug: 'acme' } }
    response.end(JSON.stringify(request.method === 'POST' ? { token } : others))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as { port: number }).port, close: () => server.close() }
}

beforeAll(async () => {
  postgres = await startPostgres()
  database = await postgres.createDatabase()
  admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  upstream = await startUpstream()
  dns = await startDnsServer({
    'well.test': ['127.0.0.1'],
    'store.test': ['127.0.0.1'],
    'silent-1.test': 'silent',
    'silent-2.test': 'silent',
  })
  const url = new URL(database.url)
  url.hostname = 'store.test'
  app = await startApp({
    databaseUrl: url.href,
    jobs: true,
    resolver: createResolver({ lookUp: createLookUp({ servers: [dns.address], read: async () => '' }) }),
  })
  agent = await app.newAgent({ scopes: ['*'] })
  await addBackend('well', 'well.test')
})
afterAll(async () => {
  await app.close()
  await dns[Symbol.asyncDispose]()
  upstream.close()
  await admin.end()
  await database.drop()
  await postgres.stop()
})

async function addBackend(name: string, host: string): Promise<void> {
  const config = {
    base_url: `http://${host}:${upstream.port}`,
    token: 'dp.sa.mine',
    configs: ['app/prd'],
    local: true,
  }
  await app.newBackend({ type: 'doppler', name, config }, '?check=false')
}

const issue = (backend: string) =>
  agent.client.post('/api/v1/credentials', { backend, scopes: ['app/prd:read'], ttl: '1h' })

/** Works while clients wait for credentials of `backend`, whose name server is silent. Returns how many had an answer meanwhile. */
async function answeredDuring(backend: string, work: () => Promise<void>): Promise<number> {
  await addBackend(backend, `${backend}.test`)
  let over = false
  let answered = 0
  const clients = Array.from({ length: CLIENTS }, async () => {
    const { body } = await issue(backend)
    expect(body.error.code).toMatch(/^backend_/)
    if (!over) answered += 1
  })
  await allWait(backend)
  await work()
  over = true
  await Promise.all(clients)
  return answered
}

/** Until each client waits for the upstream, and no longer for the store. */
async function allWait(backend: string): Promise<void> {
  const counted = "SELECT count(*)::int AS count FROM credentials WHERE backend = $1 AND state = 'pending'"
  await expect
    .poll(async () => (await admin.query(counted, [backend])).rows[0].count, { interval: 10 })
    .toBe(CLIENTS)
}

test('issues and revokes at a healthy upstream before anybody has given up on a silent name server', async () => {
  const answered = await answeredDuring('silent-1', async () => {
    const { status, body } = await issue('well')
    expect(status).toBe(201)
    expect((await agent.client.delete(`/api/v1/credentials/${body.id}`)).status).toBe(200)
  })
  expect(answered).toBe(0)
})

test('connects to the store again before anybody has given up on a silent name server', async () => {
  const answered = await answeredDuring('silent-2', async () => {
    const { rowCount } = await admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'mayfly %'",
    )
    expect(rowCount).toBeGreaterThan(0)
    while ((await issue('well')).status !== 201);
  })
  expect(answered).toBe(0)
})
