import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const CRED = /^cred_[0-7][0-9a-hjkmnp-tv-z]{25}$/

describe.each(DIALECTS)('group A credentials on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent
  let backend: string

  beforeAll(async () => {
    app = await startApp({ dialect })
    backend = await app.newBackend({ name: 'orders', max_ttl: '2h', default_ttl: '20m' })
    agent = await app.newAgent({ scopes: ['orders:read', 'orders:write:*'] })
  })
  afterAll(() => app.close())

  const issue = (body: object) => agent.client.post('/api/v1/credentials', { backend, ...body })

  test('issues with 201, a Location, and exactly the documented fields', async () => {
    const reply = await issue({ ttl: '1h30m', scopes: ['read', 'orders:write:eu'], metadata: { job: 7 } })
    expect(reply.status).toBe(201)
    expect(reply.body).toEqual({
      id: expect.stringMatching(CRED),
      token: expect.stringMatching(/^eyJ/),
      backend: 'orders',
      scopes: ['read', 'orders:write:eu'],
      expires_at: expect.stringMatching(RFC3339),
      created_at: expect.stringMatching(RFC3339),
      ttl: '1h30m',
    })
    expect(reply.headers.get('location')).toBe(`/api/v1/credentials/${reply.body.id}`)
    const lasts = Date.parse(reply.body.expires_at) - Date.parse(reply.body.created_at)
    // A JWT counts whole seconds.
    expect(lasts).toBeGreaterThan(5_400_000 - 1_000)
    expect(lasts).toBeLessThanOrEqual(5_400_000)
  })

  test('returns the metadata of a credential, never its token', async () => {
    const { body } = await issue({ scopes: ['read'] })
    const reply = await agent.client.get(`/api/v1/credentials/${body.id}`)
    expect(reply.status).toBe(200)
    expect(reply.body).toEqual({
      id: body.id,
      backend: 'orders',
      scopes: ['read'],
      expires_at: body.expires_at,
      created_at: body.created_at,
      revoked: false,
      status: 'active',
      agent: agent.name,
    })
    expect(reply.text).not.toContain(body.token)
    const revoked = await agent.client.delete(`/api/v1/credentials/${body.id}`)
    const after = await agent.client.get(`/api/v1/credentials/${body.id}`)
    expect(after.body).toMatchObject({
      revoked: true,
      status: 'revoked',
      revoked_at: revoked.body.revoked_at,
      upstream: 'expires',
    })
  })

  test('returns id, revoked and revoked_at on revocation, and the same when repeated', async () => {
    const { body } = await issue({})
    const first = await agent.client.delete(`/api/v1/credentials/${body.id}`)
    expect(first.status).toBe(200)
    expect(first.body).toEqual({
      id: body.id,
      revoked: true,
      revoked_at: expect.stringMatching(RFC3339),
      upstream: 'expires',
    })
    const again = await agent.client.delete(`/api/v1/credentials/${body.id}`)
    expect([again.status, again.body]).toEqual([200, first.body])
  })

  test('returns 200 and the time of expiry when an expired credential is deleted', async () => {
    const { body } = await issue({ ttl: '5s' })
    app.advance(6_000)
    const read = await agent.client.get(`/api/v1/credentials/${body.id}`)
    expect(read.body).toMatchObject({ status: 'expired', revoked: false })
    expect(read.body.revoked_at).toBeUndefined()
    for (let time = 0; time < 2; time += 1) {
      const reply = await agent.client.delete(`/api/v1/credentials/${body.id}`)
      expect([reply.status, reply.body.revoked, reply.body.revoked_at]).toEqual([200, true, body.expires_at])
    }
    expect((await agent.client.get(`/api/v1/credentials/${body.id}`)).body.status).toBe('expired')
  })

  test('uses the default lifetime of the backend when ttl is omitted', async () => {
    expect((await issue({})).body.ttl).toBe('20m')
  })

  test('refuses a ttl above max_ttl instead of clamping it, however absurd', async () => {
    expect((await issue({ ttl: '2h' })).status).toBe(201)
    for (const ttl of ['2h1ms', '121m', `${'9'.repeat(200)}w`, '1w']) {
      const reply = await issue({ ttl })
      expect([ttl, reply.status, reply.body.error.code]).toEqual([ttl, 400, 'ttl_exceeded'])
    }
  })

  test.each(['0s', '-5m', '+5m', '1.5h', '5 m', '5M', 'm', '', '1m1h', '1h1h', '10', 'PT5M', '1h 30m', '٣m'])(
    'the ttl %j is not a duration',
    async (ttl) => {
      const reply = await issue({ ttl })
      expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    },
  )

  test.each([
    ['90m', '1h30m'],
    ['60s', '1m'],
    ['5400s', '1h30m'],
    ['1h', '1h'],
    ['45s', '45s'],
    ['1500ms', '1s500ms'],
    ['1h30m15s', '1h30m15s'],
  ])('shows the ttl %s as %s', async (ttl, shown) => {
    expect((await issue({ ttl })).body.ttl).toBe(shown)
  })

  test('requires a backend', async () => {
    const reply = await agent.client.post('/api/v1/credentials', { ttl: '5m' })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expect(reply.body.error.message).toContain('backend')
  })

  test('answers backend_not_found for an unknown backend', async () => {
    const reply = await issue({ backend: 'nowhere' })
    expect([reply.status, reply.body.error.code]).toEqual([404, 'backend_not_found'])
  })

  test('answers scope_not_allowed for a scope that the agent or the backend does not cover', async () => {
    for (const scopes of [['delete'], ['read', 'delete'], ['orders:delete'], ['*']]) {
      const reply = await issue({ scopes })
      expect([reply.status, reply.body.error.code]).toEqual([403, 'scope_not_allowed'])
    }
  })

  test.each([
    ['ttl as a number', { ttl: 600 }],
    ['scopes as a string', { scopes: 'read' }],
    ['a scope of another type', { scopes: [1] }],
    ['an unknown field', { tll: '5m' }],
    ['metadata as a list', { metadata: [1] }],
    ['metadata as text', { metadata: 'x' }],
    ['metadata that is null', { metadata: null }],
    ['a scope that is no scope', { scopes: ['a::b'] }],
    ['a scope with a space', { scopes: ['read write'] }],
    ['a backend of another type', { backend: ['orders'] }],
    ['65 scopes', { scopes: Array.from({ length: 65 }, () => 'read') }],
    [
      '65 keys of metadata',
      { metadata: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 1])) },
    ],
    ['metadata over 8 KiB', { metadata: { text: 'x'.repeat(8_200) } }],
    ['a param that the kind does not know', { params: { nonsense: 1 } }],
  ])('answers invalid_request for %s', async (_what, body) => {
    const reply = await issue(body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('records metadata of up to 8 KiB and 64 keys in the audit, and only there', async () => {
    const metadata = {
      ...Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`k${i}`, i])),
      text: 'x'.repeat(7_000),
    }
    const { status, body } = await issue({ metadata })
    expect(status).toBe(201)
    expect((await agent.client.get(`/api/v1/credentials/${body.id}`)).text).not.toContain('xxxx')
    const audit = await agent.client.get(`/api/v1/audit?credential=${body.id}&action=credential.issued`)
    expect(audit.body.entries[0].metadata).toEqual(metadata)
  })

  test('never issues a credential that outlives its agent', async () => {
    const short = await app.newAgent({ scopes: ['orders'], expires_in: '10m' })
    const reply = await short.client.post('/api/v1/credentials', { backend, ttl: '1h' })
    expect(reply.status).toBe(201)
    expect(Date.parse(reply.body.expires_at)).toBeLessThanOrEqual(Date.parse(short.expires_at ?? ''))
  })

  test('grants all scopes of the agent on the backend when none are requested', async () => {
    expect((await issue({})).body.scopes).toEqual(['read', 'write:*'])
  })

  test('narrows scopes by allowed_scopes of the backend, with a trailing wildcard', async () => {
    const narrow = await app.newBackend({ allowed_scopes: ['read', 'logs:*'] })
    const wide = await app.newAgent({ scopes: [`${narrow}:*`] })
    const ask = (scopes?: string[]) =>
      wide.client.post('/api/v1/credentials', { backend: narrow, ...(scopes && { scopes }) })
    expect((await ask()).body.scopes).toEqual(['read', 'logs:*'])
    expect((await ask(['logs:today:x', `${narrow}:read`])).status).toBe(201)
    expect((await ask(['write'])).body.error.code).toBe('scope_not_allowed')
    expect((await ask(['read', 'write'])).body.error.code).toBe('scope_not_allowed')
    const none = await app.newAgent({ scopes: [`${narrow}:write`] })
    const reply = await none.client.post('/api/v1/credentials', { backend: narrow })
    expect(reply.body.error.code).toBe('scope_not_allowed')
  })

  test('refuses an agent without a scope for the backend, and grants nothing for an empty list', async () => {
    const other = await app.newAgent({ scopes: ['elsewhere:read'] })
    const nobody = await app.newAgent({})
    for (const one of [other, nobody]) {
      for (const scopes of [undefined, [], ['read']]) {
        const reply = await one.client.post('/api/v1/credentials', { backend, ...(scopes && { scopes }) })
        expect([reply.status, reply.body.error.code]).toEqual([403, 'scope_not_allowed'])
      }
    }
    const empty = await issue({ scopes: [] })
    expect([empty.status, empty.body.scopes]).toEqual([201, []])
    const claims = JSON.parse(Buffer.from(empty.body.token.split('.')[1], 'base64url').toString())
    expect(claims.scope).toBe('')
  })

  test('assigns time-ordered ids', async () => {
    const ids: string[] = []
    for (let one = 0; one < 5; one += 1) ids.push((await issue({})).body.id)
    expect(ids).toEqual([...ids].sort())
  })
})
