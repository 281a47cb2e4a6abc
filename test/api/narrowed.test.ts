import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  await app.newBackend({ name: 'stock' })
  agent = await app.newAgent({ scopes: ['orders', 'stock:read', 'admin:agents:*'] })
})
afterAll(() => app.close())

describe('a JWT with a narrower scope', () => {
  test('is limited to it in issuing, in administration and in what it shows', async () => {
    const token = await app.accessToken(agent, 'orders:read')
    expect(decodeJwt(token)).toMatchObject({
      agent_id: agent.id,
      scopes: ['orders:read'],
      scope: 'orders:read',
    })
    const narrow = app.as(token)
    expect((await narrow.get('/v1/status')).body.scopes).toEqual(['orders:read'])
    const issued = await narrow.post('/api/v1/credentials', { backend: 'orders' })
    expect([issued.status, issued.body.scopes]).toEqual([201, ['read']])
    for (const body of [{ backend: 'orders', scopes: ['write'] }, { backend: 'stock' }]) {
      const reply = await narrow.post('/api/v1/credentials', body)
      expect([reply.status, reply.body.error.code]).toEqual([403, 'scope_not_allowed'])
    }
    expect((await narrow.get('/v1/admin/agents')).status).toBe(403)
  })

  test('is still the same agent: its own credentials and entries are there', async () => {
    const { id } = (await agent.client.post('/v1/credentials/stock')).body
    const narrow = app.as(await app.accessToken(agent, 'orders:read'))
    expect((await narrow.get(`/api/v1/credentials/${id}`)).status).toBe(200)
    expect((await narrow.delete(`/v1/active/${id}`)).status).toBe(204)
  })

  test('may grant no more than it is limited to', async () => {
    const narrow = app.as(await app.accessToken(agent, 'admin:agents:write orders:read'))
    expect((await narrow.post('/v1/admin/agents', { name: 'n-1', scopes: ['orders:read'] })).status).toBe(200)
    const reply = await narrow.post('/v1/admin/agents', { name: 'n-2', scopes: ['stock:read'] })
    expect([reply.status, reply.body.error.code]).toEqual([403, 'insufficient_scope'])
  })

  test('loses at once what the agent loses: effective scopes are both', async () => {
    const one = await app.newAgent({ scopes: ['orders', 'stock'] })
    const token = await app.accessToken(one)
    const client = app.as(token)
    expect((await client.post('/v1/credentials/stock')).status).toBe(200)
    await app.core.store.commit([
      {
        op: 'run',
        sql: 'UPDATE agents SET scopes = ?, version = version + 1 WHERE id = ?',
        params: ['["orders:read"]', one.id],
        rows: 1,
      },
      { op: 'forget' },
    ])
    expect((await client.get('/v1/status')).body.scopes).toEqual(['orders:read'])
    expect((await client.post('/v1/credentials/stock')).body.error.code).toBe('scope_not_allowed')
  })
})

describe('an opaque token', () => {
  test('is permanent: after years it is as good', async () => {
    app.advance(20 * 365 * 86_400_000)
    expect((await agent.client.get('/v1/status')).status).toBe(200)
  })
})
