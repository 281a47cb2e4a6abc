import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { DIALECTS } from '../support/store.ts'

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe.each(DIALECTS)('agents on %s', (dialect) => {
  let app: TestApp

  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())

  test('answers a creation with 200 and all one-time fields in their formats', async () => {
    const wish = { name: 'Ada.1', scopes: ['orders:read'], expires_in: '48h' }
    const { status, body } = await app.admin('POST', '/v1/admin/agents', wish)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^ag_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
      name: 'Ada.1',
      token: expect.stringMatching(/^ckr_[0-9a-f]{48}$/),
      scopes: ['orders:read'],
      created_at: expect.stringMatching(RFC3339),
      expires_at: expect.stringMatching(RFC3339),
      oidc: {
        client_id: expect.stringMatching(/^agent_[0-7][0-9a-hjkmnp-tv-z]{25}$/),
        client_secret: expect.stringMatching(/^cks_[0-9a-f]{64}$/),
      },
      signing_key_id: expect.stringMatching(/^[0-9A-F]{16,40}$/i),
      signing_email: 'Ada.1@mayfly.test',
    })
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(48 * 3_600_000)
  })

  test('creates an agent well within the time of an HTTP request', async () => {
    const spent = await cpuMsOf(async () => {
      for (let one = 0; one < 5; one += 1) await app.newAgent()
    })
    expect(spent / 5).toBeLessThan(500)
  })

  test('requires only the name; without scopes the agent may do nothing', async () => {
    const agent = await app.newAgent({ name: 'bare' })
    expect([agent.scopes, agent.expires_at]).toEqual([[], null])
    expect((await agent.client.get('/v1/status')).body.scopes).toEqual([])
    const missing = await app.admin('POST', '/v1/admin/agents', { scopes: [] })
    expect([missing.status, missing.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('lists agents as a bare array of the specified fields, without secrets', async () => {
    const agent = await app.newAgent({ name: 'listed', scopes: ['orders'] })
    const before = (await app.admin('GET', '/v1/admin/agents?limit=1000')).body
    expect(Array.isArray(before)).toBe(true)
    expect(before.find((one: { id: string }) => one.id === agent.id)).toEqual({
      id: agent.id,
      name: 'listed',
      scopes: ['orders'],
      created_at: agent.created_at,
      last_used: null,
      expires_at: null,
      policy: null,
      owner: 'local',
      live: 0,
      last_used_from: null,
      signing_key_id: agent.signing_key_id,
    })
    await agent.client.get('/v1/status')
    const after = await app.admin('GET', '/v1/admin/agents?limit=1000')
    expect(after.body.find((one: { id: string }) => one.id === agent.id).last_used).toMatch(RFC3339)
    for (const secret of [agent.token, agent.oidc.client_secret, 'PRIVATE KEY'])
      expect(after.text).not.toContain(secret)
    const one = await app.admin('GET', '/v1/admin/agents/LISTED')
    expect([one.status, one.body.id]).toEqual([200, agent.id])
    expect(one.text).not.toContain(agent.token)
  })

  test.each(['', ' a', 'a b', '-a', '.a', '_a', 'a/b', 'a:b', 'a*', 'ä', 'a\n', 'a\u0000', 'a'.repeat(129)])(
    'the name %j is refused',
    async (name) => {
      const reply = await app.admin('POST', '/v1/admin/agents', { name })
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    },
  )

  test('accepts a name of 128 characters', async () => {
    const name = `N${'x'.repeat(125)}.-`
    const reply = await app.admin('POST', '/v1/admin/agents', { name })
    expect([reply.status, reply.body.name ?? reply.body.error.message]).toEqual([200, name])
  })

  test.each(['admin', 'openid', 'local', 'system', 'mayfly', 'Admin', 'SYSTEM'])(
    'the name %s is reserved',
    async (name) => {
      const reply = await app.admin('POST', '/v1/admin/agents', { name })
      expect([reply.status, reply.body.error.code]).toEqual([409, 'conflict'])
    },
  )

  test('answers a taken name with a conflict, ignoring case', async () => {
    await app.newAgent({ name: 'Twice' })
    for (const name of ['Twice', 'twice', 'TWICE']) {
      const reply = await app.admin('POST', '/v1/admin/agents', { name })
      expect([reply.status, reply.body.error.code]).toEqual([409, 'conflict'])
    }
  })

  test('gives a name to one of several concurrent requests', async () => {
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => app.admin('POST', '/v1/admin/agents', { name: 'raced' })),
    )
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409])
  })

  test.each([
    ['scopes as text', { scopes: 'orders' }],
    ['a scope that is none', { scopes: ['a:'] }],
    ['65 scopes', { scopes: Array.from({ length: 65 }, (_, i) => `s${i}`) }],
    ['a scope of 257 characters', { scopes: ['x'.repeat(257)] }],
    ['expires_in as a number', { expires_in: 5 }],
    ['expires_in of zero', { expires_in: '0s' }],
    ['an unknown field', { expiresIn: '5m' }],
  ])('%s is invalid_request', async (_what, body) => {
    const reply = await app.admin('POST', '/v1/admin/agents', { name: 'never', ...body })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('ends the token and all credentials of a deleted agent at once', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const jwt = await app.accessToken(agent)
    const ids: string[] = []
    for (let one = 0; one < 3; one += 1) ids.push((await agent.client.post('/v1/credentials/orders')).body.id)
    const reply = await app.admin('DELETE', `/v1/admin/agents/${agent.name.toUpperCase()}`)
    expect([reply.status, reply.text]).toEqual([204, ''])
    for (const token of [agent.token, jwt]) {
      const refused = await app.as(token).get('/v1/status')
      expect([refused.status, refused.body.error.code]).toEqual([401, 'unauthorized'])
    }
    for (const id of ids) {
      const { body } = await app.admin('GET', `/api/v1/credentials/${id}`)
      expect([body.status, body.revoked]).toEqual(['revoked', true])
    }
    await expect(app.accessToken(agent)).rejects.toThrow('invalid_client')
    const keys = (await app.admin('GET', '/v1/admin/keys?limit=1000')).body
    expect(keys.some((key: { agent_id: string }) => key.agent_id === agent.id)).toBe(false)
    const { body: entries } = await app.admin('GET', `/v1/admin/audit?agent=${agent.id}`)
    const actions = entries.map((entry: { action: string }) => entry.action)
    expect(actions.filter((action: string) => action === 'credential.revoked')).toHaveLength(3)
    expect(actions.filter((action: string) => action === 'agent.deleted')).toHaveLength(1)
    const gone = await app.admin('DELETE', `/v1/admin/agents/${agent.name}`)
    expect([gone.status, gone.body.error.code]).toEqual([404, 'agent_not_found'])
    expect((await app.admin('GET', `/v1/admin/agents/${agent.name}`)).body.error.code).toBe('agent_not_found')
  })

  test('allows the name of a deleted agent again, without inheriting anything', async () => {
    const first = await app.newAgent({ name: 'again', scopes: ['orders'] })
    const { id } = (await first.client.post('/v1/credentials/orders')).body
    await app.admin('DELETE', '/v1/admin/agents/again')
    const second = await app.newAgent({ name: 'Again' })
    expect(second.id).not.toBe(first.id)
    expect((await second.client.get('/v1/active')).body).toEqual([])
    expect((await second.client.get('/v1/status')).body.scopes).toEqual([])
    expect((await second.client.get(`/api/v1/credentials/${id}`)).status).toBe(404)
    expect(
      (await second.client.get('/api/v1/audit')).body.entries.every(
        (entry: { agent_id: string }) => entry.agent_id === second.id,
      ),
    ).toBe(true)
    expect(second.signing_key_id).not.toBe(first.signing_key_id)
    expect((await app.as(first.token).get('/v1/status')).status).toBe(401)
  })

  test('rotates by a new agent and the deletion of the old one', async () => {
    const old = await app.newAgent({ scopes: ['orders'] })
    const fresh = await app.newAgent({ scopes: ['orders'] })
    await app.admin('DELETE', `/v1/admin/agents/${old.name}`)
    expect((await old.client.get('/v1/status')).status).toBe(401)
    expect((await fresh.client.get('/v1/status')).status).toBe(200)
  })

  test('lets an agent delete itself', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const { id } = (await agent.client.post('/v1/credentials/orders')).body
    const reply = await agent.client.delete('/v1/self')
    expect([reply.status, reply.text]).toEqual([204, ''])
    expect((await agent.client.get('/v1/status')).status).toBe(401)
    expect((await app.admin('GET', `/api/v1/credentials/${id}`)).body.status).toBe('revoked')
    const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.id}&action=agent.deleted`)
    expect(body[0].actor).toBe(agent.id)
  })

  test('checks expiry on every authentication, and ends an expired agent like a deleted one', async () => {
    const agent = await app.newAgent({ scopes: ['orders'], expires_in: '30s' })
    const jwt = await app.accessToken(agent)
    const { id } = (await agent.client.post('/v1/credentials/orders', { ttl: '5m' })).body
    expect((await agent.client.get('/v1/status')).body.expires_at).toBe(agent.expires_at)
    app.advance(31_000)
    for (const token of [agent.token, jwt]) expect((await app.as(token).get('/v1/status')).status).toBe(401)
    await expect(app.accessToken(agent)).rejects.toThrow('invalid_client')
    const { reapAgents } = await import('../../src/core/agents/reap-agents.ts')
    await reapAgents(app.core, new AbortController().signal)
    expect((await app.admin('GET', `/v1/admin/agents/${agent.name}`)).status).toBe(404)
    expect((await app.admin('GET', `/api/v1/credentials/${id}`)).body.status).not.toBe('active')
    const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.id}&action=agent.expired`)
    expect(body).toHaveLength(1)
  })

  test('lets a caller grant only scopes it holds, the local host excepted', async () => {
    const boss = await app.newAgent({ scopes: ['admin:agents:*', 'orders:read'] })
    const create = (name: string, scopes: string[]) => boss.client.post('/v1/admin/agents', { name, scopes })
    expect((await create('granted', ['orders:read:eu', 'admin:agents:read'])).status).toBe(200)
    for (const scope of ['orders', 'orders:*', 'admin:*', '*', 'admin:tokens:read', 'admin']) {
      const reply = await create('greedy', [scope])
      expect([scope, reply.status, reply.body.error.code]).toEqual([scope, 403, 'insufficient_scope'])
    }
    const star = await app.newAgent({ scopes: ['*', 'admin:agents:write'] })
    const reply = await star.client.post('/v1/admin/agents', { name: 'by-star', scopes: ['admin:keys:read'] })
    expect(reply.body.error.code).toBe('insufficient_scope')
  })
})
