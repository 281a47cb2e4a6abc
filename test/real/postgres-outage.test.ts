import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const LOGIN = `mayfly_${randomBytes(6).toString('hex')}`
let app: TestApp
let agent: NewAgent
let server: TestPostgres
let database: TestDatabase
let root: pg.Client

beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  root = new pg.Client({ connectionString: database.url })
  await root.connect()
  await root.query(`CREATE ROLE ${LOGIN} SUPERUSER LOGIN PASSWORD 'secret'`)
  app = await startApp({ jobs: true })
  const config = {
    host: server.host,
    port: server.port,
    database: database.name,
    username: LOGIN,
    password: 'secret',
    local: true,
  }
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'db', config })
  expect(reply.status).toBe(200)
  agent = await app.newAgent({ scopes: ['db'] })
})
afterAll(async () => {
  await app.close()
  await root.query(`DROP ROLE IF EXISTS ${LOGIN}`)
  await root.end()
  await database.drop()
  await server.stop()
})

/** The upstream refuses Mayfly from now on. */
async function shutOut(): Promise<void> {
  await root.query(`ALTER ROLE ${LOGIN} NOLOGIN`)
  await root.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [LOGIN])
}

test('a revocation that the upstream refuses is durable here, pending, and done when it can be', async () => {
  const { id, fields } = (await agent.client.post('/v1/credentials/db')).body
  const exists = async () =>
    (await root.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [fields.username])).rowCount === 1
  await shutOut()
  const reply = await agent.client.delete(`/api/v1/credentials/${id}`)
  expect([reply.status, reply.body.revoked, reply.body.upstream]).toEqual([200, true, 'pending'])
  expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
  expect(await exists()).toBe(true)
  const again = await agent.client.delete(`/api/v1/credentials/${id}`)
  expect(again.body).toEqual(reply.body)
  const refused = await agent.client.post('/v1/credentials/db')
  expect([502, 503]).toContain(refused.status)
  expect(refused.text).not.toContain(LOGIN)
  await root.query(`ALTER ROLE ${LOGIN} LOGIN`)
  await eventually(async () => expect(await exists()).toBe(false), 25_000)
  await eventually(async () =>
    expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body).toEqual({
      ...reply.body,
      upstream: 'revoked',
    }),
  )
  const { body } = await app.admin('GET', `/v1/admin/audit?credential=${id}`)
  const actions = body.map((entry: { action: string }) => entry.action)
  expect(actions.filter((action: string) => action === 'credential.revoked')).toHaveLength(1)
  expect(actions).toEqual(expect.arrayContaining(['credential.revoke_failed', 'credential.settled']))
})
