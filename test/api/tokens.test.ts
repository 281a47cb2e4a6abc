import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe.each(DIALECTS)('credentials for the administrator on %s', (dialect) => {
  let app: TestApp
  let ada: NewAgent
  let bob: NewAgent
  let ids: { a: string; b: string; c: string; gone: string; short: string }

  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    await app.newBackend({ name: 'stock' })
    ada = await app.newAgent({ name: 'ada', scopes: ['orders', 'stock'] })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
    const issue = async (agent: NewAgent, backend: string, ttl = '1h') =>
      (await agent.client.post(`/v1/credentials/${backend}`, { ttl, scopes: ['read'] })).body.id as string
    ids = {
      a: await issue(ada, 'orders'),
      b: await issue(ada, 'stock'),
      c: await issue(bob, 'orders'),
      gone: await issue(bob, 'orders'),
      short: await issue(bob, 'orders', '2s'),
    }
    await bob.client.delete(`/v1/active/${ids.gone}`)
    app.advance(3_000)
  })
  afterAll(() => app.close())

  const list = async (query = '') =>
    (await app.admin('GET', `/v1/admin/tokens${query}`)).body.map((one: { id: string }) => one.id)

  test('are listed as a bare array, newest first, with exactly the documented fields', async () => {
    const { status, body, text } = await app.admin('GET', '/v1/admin/tokens')
    expect(status).toBe(200)
    expect(body.map((one: { id: string }) => one.id)).toEqual([ids.short, ids.gone, ids.c, ids.b, ids.a])
    expect(body[4]).toEqual({
      id: ids.a,
      agent_id: ada.id,
      agent_name: 'ada',
      backend: 'orders',
      scopes: ['read'],
      status: 'active',
      expires_at: expect.stringMatching(RFC3339),
      created_at: expect.stringMatching(RFC3339),
    })
    expect(body.map((one: { upstream?: string }) => one.upstream)).toEqual([
      'expires',
      'expires',
      undefined,
      undefined,
      undefined,
    ])
    expect(text).not.toMatch(/eyJ[\w-]+\./)
  })

  test('are filtered by backend, agent and status', async () => {
    expect(await list('?backend=stock')).toEqual([ids.b])
    expect(await list('?agent=ada')).toEqual([ids.b, ids.a])
    expect(await list(`?agent=${bob.id}&status=active`)).toEqual([ids.c])
    expect(await list('?status=revoked')).toEqual([ids.gone])
    expect(await list('?status=expired')).toEqual([ids.short])
    expect(await list('?agent=ada&backend=orders')).toEqual([ids.a])
    expect(await list('?agent=nobody')).toEqual([])
    for (const query of ['?status=pending', '?nonsense=1', '?cursor=x', '?backend=orders&cursor=x']) {
      const reply = await app.admin('GET', `/v1/admin/tokens${query}`)
      expect([query, reply.status, reply.body.error?.code]).toEqual([query, 400, 'invalid_request'])
    }
  })

  test('are revoked by DELETE with 204, also when repeated, with the actor in the audit', async () => {
    const { id } = (await ada.client.post('/v1/credentials/orders')).body
    for (let time = 0; time < 2; time += 1) {
      const reply = await app.admin('DELETE', `/v1/admin/tokens/${id}`)
      expect([reply.status, reply.text]).toEqual([204, ''])
    }
    expect((await ada.client.get(`/api/v1/credentials/${id}`)).body.revoked).toBe(true)
    const { body } = await app.admin('GET', `/v1/admin/audit?credential=${id}&action=credential.revoked`)
    expect(body).toHaveLength(1)
    expect(body[0]).toMatchObject({ actor: 'local', agent_id: ada.id, auth_method: 'unix_socket' })
    const none = await app.admin('DELETE', `/v1/admin/tokens/cred_${'0'.repeat(26)}`)
    expect([none.status, none.body.error.code]).toEqual([404, 'credential_not_found'])
  })

  test('are reachable in group A with admin:tokens:read and :write', async () => {
    const reader = await app.newAgent({ scopes: ['admin:tokens:read'] })
    const writer = await app.newAgent({ scopes: ['admin:tokens:write'] })
    const { id } = (await ada.client.post('/v1/credentials/orders')).body
    expect((await reader.client.get(`/api/v1/credentials/${id}`)).body.agent).toBe('ada')
    expect((await reader.client.delete(`/api/v1/credentials/${id}`)).status).toBe(404)
    expect((await writer.client.get(`/api/v1/credentials/${id}`)).status).toBe(404)
    expect((await writer.client.delete(`/api/v1/credentials/${id}`)).status).toBe(200)
  })
})
