import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { startPostgres } from '../support/postgres.ts'
import { DIALECTS } from '../support/store.ts'

describe.each(DIALECTS)('rotating the secrets of an agent, on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())

  const rotate = (name: string, body?: unknown) => app.admin('POST', `/v1/admin/agents/${name}/rotate`, body)
  const statusBy = async (token: string) => (await app.as(token).get('/v1/status')).status
  async function login(clientId: string, secret: string) {
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret }
    const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    return { status: reply.status, body: (await reply.json()) as Record<string, string> }
  }
  async function introspect(by: NewAgent, token: string) {
    const body = new URLSearchParams({ ...by.oidc, token })
    return (await fetch(`${app.url}/oauth/introspect`, { method: 'POST', body })).json()
  }

  test('gives new secrets that work, and ends the old ones and what came from them at once', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const jwt = await app.accessToken(agent)
    const credential = await agent.client.post('/api/v1/credentials', { backend: 'orders' })
    // Cached by now.
    expect([await statusBy(agent.token), await statusBy(jwt)]).toEqual([200, 200])
    const { status, body } = await rotate(agent.name)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: agent.id,
      name: agent.name,
      token: expect.stringMatching(/^ckr_[0-9a-f]{48}$/),
      scopes: ['orders'],
      created_at: agent.created_at,
      expires_at: null,
      oidc: {
        client_id: agent.oidc.client_id,
        client_secret: expect.stringMatching(/^cks_[0-9a-f]{64}$/),
      },
      signing_key_id: agent.signing_key_id,
      signing_email: agent.signing_email,
      previous_valid_until: null,
    })
    expect([await statusBy(agent.token), await statusBy(jwt)]).toEqual([401, 401])
    expect((await login(agent.oidc.client_id, agent.oidc.client_secret)).body['error']).toBe('invalid_client')
    const fresh = await login(agent.oidc.client_id, body.oidc.client_secret)
    expect(fresh.status).toBe(200)
    for (const token of [body.token, fresh.body['access_token'] ?? '']) {
      expect(await statusBy(token)).toBe(200)
      const seen = await app.as(token).get(`/api/v1/credentials/${credential.body.id}`)
      expect(seen.body.status).toBe('active')
      expect((await app.as(token).post('/v1/credentials/orders')).status).toBe(200)
    }
    const rotated = { ...agent, oidc: body.oidc }
    expect(await introspect(rotated, agent.token)).toEqual({ active: false })
    expect(await introspect(rotated, jwt)).toEqual({ active: false })
    expect(await introspect(rotated, fresh.body['access_token'] ?? '')).toMatchObject({ active: true })
  })

  test('keeps the old secrets, and what comes from them, for the grace and not a moment longer', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const before = await app.accessToken(agent)
    const { body } = await rotate(agent.name, { grace: '10m' })
    const until = Date.parse(body.previous_valid_until)
    expect((await app.admin('GET', `/v1/admin/agents/${agent.name}`)).body.previous_secrets_until).toBe(
      body.previous_valid_until,
    )
    const during = (await login(agent.oidc.client_id, agent.oidc.client_secret)).body
    // It ends with the secret that it came from.
    expect(Number(during['expires_in'])).toBeLessThanOrEqual(600)
    const old = [agent.token, before, during['access_token'] ?? '']
    for (const token of old) {
      expect(await statusBy(token)).toBe(200)
      const { exp } = (await introspect({ ...agent, oidc: body.oidc }, token)) as { exp: number }
      expect(exp * 1000).toBeLessThanOrEqual(until)
    }
    const left = until - app.core.store.now()
    app.advance(left - 1_000)
    for (const token of old) expect(await statusBy(token)).toBe(200)
    app.advance(1_000)
    for (const token of old) {
      expect(await statusBy(token)).toBe(401)
      expect(await introspect({ ...agent, oidc: body.oidc }, token)).toEqual({ active: false })
    }
    expect((await login(agent.oidc.client_id, agent.oidc.client_secret)).status).toBe(401)
    expect(await statusBy(body.token)).toBe(200)
    const shown = (await app.admin('GET', `/v1/admin/agents/${agent.name}`)).body
    expect(shown.previous_secrets_until).toBeUndefined()
  })

  test('ends an earlier grace with the next rotation', async () => {
    const agent = await app.newAgent()
    const second = (await rotate(agent.name, { grace: '1h' })).body
    const third = (await rotate(agent.name, { grace: '1h' })).body
    expect(await Promise.all([agent.token, second.token, third.token].map(statusBy))).toEqual([401, 200, 200])
    const fourth = (await rotate(agent.name)).body
    expect(await Promise.all([second.token, third.token, fourth.token].map(statusBy))).toEqual([
      401, 401, 200,
    ])
  })

  test('is recorded, without the secrets', async () => {
    const agent = await app.newAgent()
    const { body } = await rotate(agent.name, { grace: '1h' })
    const reply = await app.admin('GET', `/v1/admin/audit?agent=${agent.name}&action=agent.rotated`)
    expect(reply.body).toMatchObject([
      { actor: 'local', details: { previous_until: Date.parse(body.previous_valid_until) } },
    ])
    expect(reply.text).not.toMatch(/ck[rs]_/)
  })

  test.each([
    ['zero', { grace: '0s' }],
    ['no duration', { grace: 'soon' }],
    ['a number', { grace: 5 }],
    ['null', { grace: null }],
    ['a thousand years', { grace: '600000w' }],
    ['another field', { graze: '1h' }],
  ])('refuses a grace of %s, and replaces nothing', async (_, body) => {
    const agent = await app.newAgent()
    const reply = await rotate(agent.name, body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expect(await statusBy(agent.token)).toBe(200)
  })

  test('knows no deleted, expired or unknown agent', async () => {
    const [deleted, expiring] = [await app.newAgent(), await app.newAgent({ expires_in: '1m' })]
    await app.admin('DELETE', `/v1/admin/agents/${deleted.name}`)
    app.advance(60_000)
    for (const name of [deleted.name, expiring.name, 'nobody'])
      expect((await rotate(name)).body.error.code).toBe('agent_not_found')
  })
})

describe('who may rotate', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.close())
  const rotate = (token: string, name: string) => app.as(token).post(`/v1/admin/agents/${name}/rotate`)
  const reasons = async (name: string) =>
    (await app.admin('GET', `/v1/admin/audit?agent=${name}&action=auth.failed`)).body.map(
      (entry: { details: { reason: string } }) => entry.details.reason,
    )

  test('an agent that holds what the other holds, with a whole token', async () => {
    const admin = await app.newAgent({ scopes: ['admin:agents:write', 'shop'] })
    const [equal, wider] = [
      await app.newAgent({ scopes: ['shop:orders:read'] }),
      await app.newAgent({ scopes: ['shop', 'stock'] }),
    ]
    expect((await rotate(admin.token, equal.name)).status).toBe(200)
    const refused = await rotate(admin.token, wider.name)
    expect([refused.status, refused.body.error.code]).toEqual([403, 'insufficient_scope'])
    const narrow = await app.accessToken(admin, 'admin:agents:write')
    expect((await rotate(narrow, equal.name)).body.error.code).toBe('insufficient_scope')
    expect((await wider.client.get('/v1/status')).status).toBe(200)
    await expect.poll(() => reasons(admin.name)).toEqual(['narrowed_token', 'grant_not_held'])
  })

  test('not one that would get extra scopes, a longer life or audiences by it', async () => {
    const scopes = ['admin:agents:write', 'shop']
    const [admin, ending] = [await app.newAgent({ scopes }), await app.newAgent({ scopes, expires_in: '1h' })]
    const extra = await app.newAgent({ scopes: ['shop'] })
    const { id } = (await extra.client.post('/v1/request', { scopes: ['stock'], expires_in: '1h' })).body
    await app.admin('POST', `/v1/admin/pending/${id}/approve`)
    expect((await rotate(admin.token, extra.name)).body.error?.code).toBe('insufficient_scope')
    const lasting = await app.newAgent({ scopes: ['shop'] })
    expect((await rotate(ending.token, lasting.name)).body.error?.code).toBe('insufficient_scope')
    const far = (await app.admin('POST', '/v1/admin/agents', { name: 'far', audiences: ['sts.example'] }))
      .body
    expect((await rotate(admin.token, far.name)).body.error?.code).toBe('insufficient_scope')
    await expect.poll(() => reasons(admin.name)).toEqual(['audience_not_held', 'grant_not_held'])
    await expect.poll(() => reasons(ending.name)).toEqual(['grant_outlives'])
  })

  test('an agent may rotate itself, which ends the token that it used', async () => {
    const self = await app.newAgent({ scopes: ['admin:agents:write'] })
    const jwt = await app.accessToken(self)
    const { body } = await rotate(jwt, self.name)
    expect((await app.as(jwt).get('/v1/status')).status).toBe(401)
    expect((await app.as(body.token).get('/v1/status')).status).toBe(200)
  })
})

test('a node refuses the old secrets as soon as another node has answered', async () => {
  const server = await startPostgres()
  const { url: databaseUrl, drop } = await server.createDatabase()
  const a = await startApp({ databaseUrl })
  const b = await startApp({ databaseUrl, masterKeyFile: join(a.directory, 'master.key') })
  try {
    const agent = await a.newAgent()
    const jwt = await a.accessToken(agent)
    for (const token of [agent.token, jwt]) expect((await b.as(token).get('/v1/status')).status).toBe(200)
    const { body } = await a.admin('POST', `/v1/admin/agents/${agent.name}/rotate`)
    for (const token of [agent.token, jwt]) expect((await b.as(token).get('/v1/status')).status).toBe(401)
    expect((await b.as(body.token).get('/v1/status')).status).toBe(200)
  } finally {
    await b.close()
    await a.close()
    await drop()
    await server.stop()
  }
})
