import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe.each(DIALECTS)('group B credentials on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent

  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders', max_ttl: '2h', default_ttl: '20m' })
    agent = await app.newAgent({ scopes: ['orders:read', 'orders:write'] })
  })
  afterAll(() => app.close())

  const shape = {
    token: expect.stringMatching(/^eyJ/),
    expires_at: expect.stringMatching(RFC3339),
    id: expect.stringMatching(/^cred_[0-9a-z]{26}$/),
    ttl: '20m',
  }

  test('issues by POST without a body, with an empty body, and with every member', async () => {
    const bare = await agent.client.post('/v1/credentials/orders')
    expect([bare.status, bare.body]).toEqual([200, shape])
    const empty = await agent.client.post('/v1/credentials/orders', '')
    expect([empty.status, empty.body]).toEqual([200, shape])
    const full = await agent.client.post('/v1/credentials/orders', {
      ttl: '5m',
      scopes: ['read'],
      metadata: { run: 1 },
      params: { audience: 'tests' },
    })
    expect(full.status).toBe(200)
    expect(full.body.ttl).toBe('5m')
    const seen = await agent.client.get(`/api/v1/credentials/${full.body.id}`)
    expect(seen.body.scopes).toEqual(['read'])
  })

  test('refuses an unexpected query on a route that acts, and does nothing', async () => {
    const before = (await agent.client.get('/v1/active?limit=1000')).body.length
    const reply = await agent.client.post('/api/v1/credentials?ttl=1m', { backend: 'orders' })
    expect([reply.status, reply.body.error.message]).toEqual([
      400,
      'The query has an unknown field; it has none.',
    ])
    expect((await agent.client.get('/v1/active?limit=1000')).body).toHaveLength(before)
  })

  test('refuses what the kind cannot issue, in its own words, and records a denial', async () => {
    const asked = { ttl: '7m', params: { audience: 'elsewhere' } }
    const reply = await agent.client.post('/v1/credentials/orders', asked)
    expect(reply.status).toBe(400)
    expect(reply.body.error).toMatchObject({
      code: 'invalid_request',
      message: 'The requested audience is not one of this backend.',
    })
    const denied = () =>
      app.admin('GET', '/v1/admin/audit?action=credential.issue_failed&backend=orders&limit=1')
    await expect
      .poll(async () => (await denied()).body[0])
      .toMatchObject({
        outcome: 'denied',
        agent_name: agent.name,
        ttl: '7m',
        details: { code: 'invalid_request' },
      })
    const tooLong = await agent.client.post('/v1/credentials/orders', { ttl: '90h', scopes: ['read'] })
    expect(tooLong.body.error.code).toBe('ttl_exceeded')
    await expect
      .poll(async () => (await denied()).body[0])
      .toMatchObject({ ttl: '90h', scopes: ['read'], details: { code: 'ttl_exceeded' } })
  })

  test('issues by GET, with ttl and repeated scope in the query', async () => {
    const reply = await agent.client.get('/v1/credentials/orders?ttl=5m&scope=read&scope=orders:write')
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({ ...shape, ttl: '5m' })
    const seen = await agent.client.get(`/api/v1/credentials/${reply.body.id}`)
    expect(seen.body.scopes).toEqual(['read', 'orders:write'])
  })

  test('refuses an unknown query member, and a body on GET', async () => {
    const reply = await agent.client.get('/v1/credentials/orders?scopes=read')
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    const body = await app.raw({
      path: '/v1/credentials/orders',
      headers: {
        authorization: `Bearer ${agent.token}`,
        'content-type': 'application/json',
        'content-length': '2',
      },
      body: '{}',
    })
    expect(body.status).toBe(400)
  })

  test('issues nothing on HEAD', async () => {
    const before = (await agent.client.get('/v1/active?limit=1000')).body.length
    const reply = await app.raw({
      method: 'HEAD',
      path: '/v1/credentials/orders',
      headers: { authorization: `Bearer ${agent.token}` },
    })
    expect(reply.status).toBe(405)
    expect((await agent.client.get('/v1/active?limit=1000')).body.length).toBe(before)
  })

  test('answers the same errors as group A', async () => {
    const unknown = await agent.client.post('/v1/credentials/nowhere')
    expect([unknown.status, unknown.body.error.code]).toEqual([404, 'backend_not_found'])
    const long = await agent.client.post('/v1/credentials/orders', { ttl: '3h' })
    expect([long.status, long.body.error.code]).toEqual([400, 'ttl_exceeded'])
    const scope = await agent.client.get('/v1/credentials/orders?scope=delete')
    expect([scope.status, scope.body.error.code]).toEqual([403, 'scope_not_allowed'])
    const field = await agent.client.post('/v1/credentials/orders', { backend: 'orders' })
    expect([field.status, field.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('lists active credentials as a bare array, oldest first, with exactly the documented fields', async () => {
    const one = await app.newAgent({ scopes: ['orders'] })
    expect((await one.client.get('/v1/active')).body).toEqual([])
    const first = (await one.client.post('/v1/credentials/orders')).body
    const second = (await one.client.post('/v1/credentials/orders', { ttl: '10s' })).body
    const { status, body } = await one.client.get('/v1/active')
    expect(status).toBe(200)
    expect(body).toEqual([
      {
        id: first.id,
        backend: 'orders',
        expires_at: first.expires_at,
        created_at: expect.stringMatching(RFC3339),
      },
      {
        id: second.id,
        backend: 'orders',
        expires_at: second.expires_at,
        created_at: expect.stringMatching(RFC3339),
      },
    ])
    app.advance(11_000)
    expect((await one.client.get('/v1/active')).body.map((each: { id: string }) => each.id)).toEqual([
      first.id,
    ])
    expect((await agent.client.get('/v1/active')).text).not.toContain(first.id)
  })

  test('revokes by DELETE with 204 and no body, also when repeated', async () => {
    const { id } = (await agent.client.post('/v1/credentials/orders')).body
    for (let time = 0; time < 2; time += 1) {
      const reply = await agent.client.delete(`/v1/active/${id}`)
      expect([reply.status, reply.text]).toEqual([204, ''])
    }
    expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
  })

  test('lets each group see, revoke and audit what the other issued', async () => {
    const b = (await agent.client.post('/v1/credentials/orders')).body
    const a = (await agent.client.post('/api/v1/credentials', { backend: 'orders' })).body
    const active = (await agent.client.get('/v1/active?limit=1000')).body.map((one: { id: string }) => one.id)
    expect(active).toEqual(expect.arrayContaining([a.id, b.id]))
    expect((await agent.client.get(`/api/v1/credentials/${b.id}`)).body.status).toBe('active')
    expect((await agent.client.delete(`/v1/active/${a.id}`)).status).toBe(204)
    expect((await agent.client.delete(`/api/v1/credentials/${b.id}`)).status).toBe(200)
    for (const id of [a.id, b.id]) {
      expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.revoked).toBe(true)
      const { entries } = (await agent.client.get(`/api/v1/audit?credential=${id}`)).body
      expect(entries.map((entry: { action: string }) => entry.action)).toEqual([
        'credential.revoked',
        'credential.issued',
      ])
    }
  })
})

describe('issue_by_get: false', () => {
  test('refuses GET with 405 and still issues by POST', async () => {
    const app = await startApp({ env: { MAYFLY_ISSUE_BY_GET: 'false' } })
    try {
      const backend = await app.newBackend()
      const agent = await app.newAgent({ scopes: [backend] })
      const reply = await agent.client.get(`/v1/credentials/${backend}`)
      expect([reply.status, reply.body.error.code]).toEqual([405, 'method_not_allowed'])
      expect(reply.headers.get('allow')).toBe('POST')
      expect((await agent.client.post(`/v1/credentials/${backend}`)).status).toBe(200)
    } finally {
      await app.close()
    }
  })
})
