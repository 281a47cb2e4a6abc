import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
let app: TestApp

beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
})
afterAll(() => app.close())

describe('GET /v1/status', () => {
  test('shows the agent, its scopes, its credentials and its requests', async () => {
    const agent = await app.newAgent({ scopes: ['orders:read'], expires_in: '1h' })
    const issued = (await agent.client.post('/v1/credentials/orders')).body
    const asked = (await agent.client.post('/v1/request', { scopes: ['orders:write'], reason: 'deploy' }))
      .body
    const { status, body } = await agent.client.get('/v1/status')
    expect(status).toBe(200)
    expect(body).toEqual({
      id: agent.id,
      name: agent.name,
      scopes: ['orders:read'],
      created_at: agent.created_at,
      last_used: expect.stringMatching(RFC3339),
      expires_at: agent.expires_at,
      active_credentials: [{ id: issued.id, backend: 'orders', expires_at: issued.expires_at }],
      pending_requests: [
        {
          id: asked.id,
          scopes: ['orders:write'],
          created_at: expect.stringMatching(RFC3339),
          expires_at: expect.stringMatching(RFC3339),
        },
      ],
    })
  })

  test('keeps last_used', async () => {
    const agent = await app.newAgent()
    await agent.client.get('/v1/status')
    await app.core.lastUse.flush()
    const shown = (await app.admin('GET', `/v1/admin/agents/${agent.name}`)).body.last_used
    expect(Math.abs(Date.parse(shown) - Date.now())).toBeLessThan(10_000)
  })

  test('shows no expires_at for a permanent agent, and no revoked credential', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const { id } = (await agent.client.post('/v1/credentials/orders')).body
    await agent.client.delete(`/v1/active/${id}`)
    const { body } = await agent.client.get('/v1/status')
    expect([body.expires_at, body.active_credentials]).toEqual([null, []])
  })
})
