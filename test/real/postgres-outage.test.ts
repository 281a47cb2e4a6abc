import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import {
  createLogin,
  openUpstreamDatabase,
  type UpstreamDatabase,
  type UpstreamLogin,
} from '../support/upstream-database.ts'

let app: TestApp
let agent: NewAgent
let upstream: UpstreamDatabase
let root: pg.Client
let login: UpstreamLogin

beforeAll(async () => {
  upstream = await openUpstreamDatabase()
  root = upstream.root
  login = await createLogin(upstream)
  app = await startApp({ jobs: true })
  const config = upstream.config(login)
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'db', config })
  expect(reply.status).toBe(200)
  agent = await app.newAgent({ scopes: ['db'] })
})
afterAll(async () => {
  await app.close()
  await login.drop()
  await upstream.close()
})

test('a revocation that the upstream refuses is durable here, pending, and done when it can be', async () => {
  const { id, fields } = (await agent.client.post('/v1/credentials/db')).body
  const exists = async () =>
    (await root.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [fields.username])).rowCount === 1
  await login.shutOut()
  const reply = await agent.client.delete(`/api/v1/credentials/${id}`)
  expect([reply.status, reply.body.revoked, reply.body.upstream]).toEqual([200, true, 'pending'])
  const seen = async () => {
    const read = (await agent.client.get(`/api/v1/credentials/${id}`)).body
    const listed = (await app.admin('GET', `/v1/admin/tokens?agent=${agent.id}`)).body
    const [one] = listed.filter((token: { id: string }) => token.id === id)
    return [read.status, read.upstream, one.status, one.upstream]
  }
  expect(await seen()).toEqual(['revoked', 'pending', 'revoked', 'pending'])
  expect(await exists()).toBe(true)
  const again = await agent.client.delete(`/api/v1/credentials/${id}`)
  expect(again.body).toEqual(reply.body)
  const refused = await agent.client.post('/v1/credentials/db')
  expect([502, 503]).toContain(refused.status)
  expect(refused.text).not.toContain(login.username)
  await login.letIn()
  await eventually(async () => expect(await exists()).toBe(false))
  await eventually(async () =>
    expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body).toEqual({
      ...reply.body,
      upstream: 'revoked',
    }),
  )
  expect(await seen()).toEqual(['revoked', 'revoked', 'revoked', 'revoked'])
  const { body } = await app.admin('GET', `/v1/admin/audit?credential=${id}`)
  const actions = body.map((entry: { action: string }) => entry.action)
  expect(actions.filter((action: string) => action === 'credential.revoked')).toHaveLength(1)
  expect(actions).toEqual(expect.arrayContaining(['credential.revoke_failed', 'credential.settled']))
  const entryOf = (action: string) => body.find((entry: { action: string }) => entry.action === action)
  expect(entryOf('credential.revoke_failed').details.code).toMatch(/^backend_(?:error|unavailable)$/)
  const { scopes, ttl } = entryOf('credential.issued')
  expect(entryOf('credential.revoked')).toMatchObject({ scopes, ttl, details: null })
})

test('an untried revocation does not count as failed while the upstream is away, and is due when it returns', async () => {
  const proxy = await startPostgresProxy(upstream.server)
  const quiet = await startApp({})
  const reply = await quiet.admin('POST', '/v1/admin/backends', {
    type: 'postgres',
    name: 'away',
    config: { ...upstream.config(login), host: '127.0.0.1', port: proxy.port },
  })
  expect(reply.status).toBe(200)
  const holder = await quiet.newAgent({ scopes: ['away'] })
  const ids: string[] = []
  for (let count = 0; count < 12; count += 1)
    ids.push((await holder.client.post('/v1/credentials/away')).body.id)
  const port = proxy.port
  await proxy.close()
  expect((await quiet.admin('DELETE', `/v1/admin/agents/${holder.name}`)).status).toBe(204)
  for (let turn = 0; turn < 30; turn += 1) {
    await quiet.sweep()
    quiet.advance(2_000)
  }
  const rows = await Promise.all(ids.map((id) => quiet.core.store.credentials.find(id)))
  expect(rows.map((row) => row?.state)).toEqual(ids.map(() => 'revoking'))
  // In a minute the breaker has let through its five failures and a few trials.
  const tries = rows.reduce((sum, row) => sum + (row?.attempts ?? 0), 0)
  expect(tries).toBeGreaterThan(5)
  expect(tries).toBeLessThan(16)
  expect(rows.filter((row) => row?.stuckAt !== null)).toEqual([])
  const back = await startPostgresProxy(upstream.server, undefined, port)
  await eventually(async () => {
    quiet.advance(5_000)
    await quiet.sweep()
    const states = await Promise.all(
      ids.map(async (id) => (await quiet.core.store.credentials.find(id))?.state),
    )
    expect(states).toEqual(ids.map(() => 'revoked'))
  })
  await quiet.close()
  await back.close()
})
