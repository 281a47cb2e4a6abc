import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY_MS } from '../../src/domain/limits.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { credentialRow, DIALECTS } from '../support/store.ts'

/** As the kind `jwt` has them. */
const FORMS = expect.arrayContaining([{ form: 'orders:read', gives: expect.stringMatching(/^read orders/) }])
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe.each(DIALECTS)('backends on %s', (dialect) => {
  let app: TestApp

  beforeAll(async () => {
    app = await startApp({ dialect })
  })
  afterAll(() => app.close())

  const wish = {
    type: 'jwt',
    name: 'Orders',
    config: { audience: 'orders' },
    default_ttl: '10m',
    max_ttl: '90m',
    allowed_scopes: ['read', 'logs:*'],
    description: 'tokens for orders',
    rate: '10/hour',
    max_active: 5,
  }

  test('creates a backend with 200, its name as id, and its settings', async () => {
    const { status, body } = await app.admin('POST', '/v1/admin/backends', wish)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: 'Orders',
      name: 'Orders',
      type: 'jwt',
      default_ttl: '10m',
      max_ttl: '1h30m',
      allowed_scopes: ['read', 'logs:*'],
      description: 'tokens for orders',
      rate: '10/hour',
      max_active: 5,
      live: 0,
      created_at: expect.stringMatching(RFC3339),
      revocation: 'expiry_only',
      scope_forms: FORMS,
      config: {
        audience: 'orders',
        algorithm: 'ES256',
        subject: 'agent_id',
        signing_key: '[redacted]',
      },
      // The trial before it was stored.
      health: {
        state: 'up',
        last_success: expect.stringMatching(RFC3339),
        last_failure: null,
        last_failure_reason: null,
        breakers: { issuing: 'closed', revoking: 'closed' },
        secret_since: expect.stringMatching(RFC3339),
      },
    })
    const read = await app.admin('GET', '/v1/admin/backends/orders')
    expect([read.status, read.body]).toEqual([200, body])
    const list = await app.admin('GET', '/v1/admin/backends')
    expect(list.body).toEqual([body])
  })

  test('shows every agent all backends, never their configuration', async () => {
    await app.newBackend({ name: 'plain' })
    const agent = await app.newAgent()
    const { status, body, text } = await agent.client.get('/api/v1/backends')
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(['backends'])
    expect(body.backends.find((one: { id: string }) => one.id === 'Orders')).toEqual({
      id: 'Orders',
      type: 'jwt',
      default_ttl: '10m',
      max_ttl: '1h30m',
      allowed_scopes: ['read', 'logs:*'],
      description: 'tokens for orders',
      revocation: 'expiry_only',
      scope_forms: FORMS,
    })
    expect(body.backends.find((one: { id: string }) => one.id === 'plain')).toEqual({
      id: 'plain',
      type: 'jwt',
      default_ttl: '1h',
      max_ttl: '24h',
      revocation: 'expiry_only',
      scope_forms: FORMS,
    })
    expect(text).not.toMatch(/config|signing_key|audience/)
    const one = await agent.client.get('/api/v1/backends/Orders')
    expect(one.body).toEqual(body.backends.find((each: { id: string }) => each.id === 'Orders'))
    const none = await agent.client.get('/api/v1/backends/nowhere')
    expect([none.status, none.body.error.code]).toEqual([404, 'backend_not_found'])
  })

  test('names a backend after its type by default, and answers conflict for a taken name', async () => {
    const reply = await app.admin('POST', '/v1/admin/backends', { type: 'jwt', config: { audience: 'x' } })
    expect([reply.status, reply.body.id]).toEqual([200, 'jwt'])
    const again = await app.admin('POST', '/v1/admin/backends', {
      type: 'jwt',
      name: 'JWT',
      config: { audience: 'x' },
    })
    expect([again.status, again.body.error.code]).toEqual([409, 'conflict'])
  })

  test.each([
    ['an unknown type', { type: 'nonsense' }],
    ['no type', { type: undefined }],
    ['a configuration without a required field', { config: {} }],
    ['a configuration with an unknown field', { config: { audience: 'x', nonsense: 1 } }],
    ['a configuration of a wrong type', { config: { audience: 5 } }],
    ['a name that is none', { name: 'a/b' }],
    ['default_ttl above max_ttl', { default_ttl: '2h', max_ttl: '1h' }],
    ['a ttl that is no duration', { max_ttl: '1 hour' }],
    ['a scope that is none', { allowed_scopes: ['::'] }],
    ['a rate that is none', { rate: 'often' }],
    ['max_active of zero', { max_active: 0 }],
    ['an unknown field', { ttl: '1h' }],
  ])('answers invalid_request for %s', async (_what, change) => {
    const reply = await app.admin('POST', '/v1/admin/backends', { ...wish, name: 'never', ...change })
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    expect((await app.admin('GET', '/v1/admin/backends/never')).status).toBe(404)
  })

  test('reports an unreachable upstream, unless check=false', async () => {
    const config = {
      host: '127.0.0.1',
      port: 1,
      database: 'd',
      username: 'u',
      password: 'very secret',
      local: true,
    }
    const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'pg', config })
    expect([reply.status, reply.body.error.code]).toEqual([503, 'backend_unavailable'])
    expect(reply.text).not.toContain('very secret')
    expect((await app.admin('GET', '/v1/admin/backends/pg')).status).toBe(404)
    const untried = await app.admin('POST', '/v1/admin/backends?check=false', {
      type: 'postgres',
      name: 'pg',
      config,
    })
    expect(untried.status).toBe(200)
    expect(untried.body.config).toMatchObject({ host: '127.0.0.1', password: '[redacted]' })
    expect(untried.body.revocation).toBe('exact')
    const { environment } = untried.body
    expect(environment).toMatchObject({ PGUSER: '{username}', PGPASSWORD: '{password}' })
    const agent = await app.newAgent()
    expect((await agent.client.get('/api/v1/backends/pg')).body.environment).toEqual(environment)
    expect((await app.admin('GET', '/v1/admin/backends')).text).not.toContain('very secret')
  })

  test('changes the named fields by PUT, keeps the others and the secrets, and takes effect at once', async () => {
    const name = await app.newBackend({ name: 'changed', max_ttl: '2h', description: 'before' })
    const agent = await app.newAgent({ scopes: [name] })
    const keys = async () => (await app.as(undefined).get(`/backends/${name}/.well-known/jwks.json`)).text
    const before = await keys()
    const shown = (await app.admin('GET', `/v1/admin/backends/${name}`)).body
    const reply = await app.admin('PUT', `/v1/admin/backends/${name}`, {
      config: { ...shown.config, audience: 'others' },
      max_ttl: '30m',
      default_ttl: '5m',
    })
    expect(reply.status).toBe(200)
    expect(reply.body).toMatchObject({
      default_ttl: '5m',
      max_ttl: '30m',
      description: 'before',
      config: { audience: 'others', signing_key: '[redacted]' },
    })
    expect(await keys()).toBe(before)
    const long = await agent.client.post(`/v1/credentials/${name}`, { ttl: '1h' })
    expect(long.body.error.code).toBe('ttl_exceeded')
    const { token } = (await agent.client.post(`/v1/credentials/${name}`)).body
    expect(JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()).aud).toBe('others')
    const type = await app.admin('PUT', `/v1/admin/backends/${name}`, { type: 'postgres' })
    expect([type.status, type.body.error.code]).toEqual([400, 'invalid_request'])
    const none = await app.admin('PUT', '/v1/admin/backends/nowhere', {})
    expect([none.status, none.body.error.code]).toEqual([404, 'backend_not_found'])
  })

  test('answers conflict to DELETE while credentials live, and revokes them first with force', async () => {
    const name = await app.newBackend()
    const agent = await app.newAgent({ scopes: [name] })
    const { id } = (await agent.client.post(`/v1/credentials/${name}`)).body
    const refused = await app.admin('DELETE', `/v1/admin/backends/${name}`)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('active')
    const reply = await app.admin('DELETE', `/v1/admin/backends/${name}?force=true`)
    expect([reply.status, reply.text]).toEqual([204, ''])
    expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
    const gone = await agent.client.post(`/v1/credentials/${name}`)
    expect([gone.status, gone.body.error.code]).toEqual([404, 'backend_not_found'])
    const again = await app.admin('DELETE', `/v1/admin/backends/${name}`)
    expect([again.status, again.body.error.code]).toEqual([404, 'backend_not_found'])
  })

  test('keeps the backend when a credential is issued during a delete without force', async () => {
    const name = await app.newBackend()
    const agent = await app.newAgent({ scopes: [name] })
    const { commit } = app.core.store
    const issued: string[] = []
    app.core.store.commit = async (change, options) => {
      if (
        !change.some(
          (step) => step.op === 'insert' && step.table === 'audit' && step.row.action === 'backend.deleted',
        )
      )
        return commit(change, options)
      // It has been seen that there is none.
      app.core.store.commit = commit
      issued.push((await agent.client.post(`/v1/credentials/${name}`)).body.id)
      return commit(change, options)
    }
    const refused = await app.admin('DELETE', `/v1/admin/backends/${name}`)
    expect([refused.status, refused.body?.error.code]).toEqual([409, 'conflict'])
    expect((await agent.client.get(`/api/v1/credentials/${issued[0]}`)).body.status).toBe('active')
    expect((await agent.client.post(`/v1/credentials/${name}`)).status).toBe(200)
  })

  test('deletes a backend with very many credentials in several commits, with an entry for each credential', async () => {
    const name = await app.newBackend()
    const uid = (await app.core.store.backends.findByName(name))?.uid ?? ''
    const later = Date.now() + DAY_MS
    const many = dialect === 'sqlite' ? 1_300 : 5_300
    const rows = Array.from({ length: many }, (_, n) =>
      credentialRow({
        backend_uid: uid,
        backend: name,
        revocation: n % 2 === 0 ? 'none' : 'exact',
        handle: null,
        expires_at: later + n,
        due_at: later + n,
      }),
    )
    await app.core.store.commit(rows.map((row) => ({ op: 'insert', table: 'credentials', row })))
    const { changes } = app.core.store.stats
    expect((await app.admin('DELETE', `/v1/admin/backends/${name}?force=true`)).status).toBe(204)
    // Two slices, and the one that ends the backend and the rest; one entry of the administrator's own.
    expect(app.core.store.stats.changes - changes).toBeGreaterThanOrEqual(4)
    for (const { id } of rows.slice(0, 1_000)) {
      const row = await app.core.store.credentials.find(id)
      if (row === undefined) throw new Error('it is gone')
      const state = row.revocation === 'none' ? 'revoked' : 'revoking'
      expect(row).toMatchObject({ state, endReason: 'backend_deleted' })
    }
    const entries = await app.core.store.audit.query({ backend: name, action: 'credential.revoked' }, 6_000)
    expect(new Set(entries.map((entry) => entry.credentialId)).size).toBe(many)
    expect(entries).toHaveLength(many)
    expect(entries[0]).toMatchObject({ actor: 'local', details: { reason: 'backend_deleted' } })
  })

  test('deletes a backend without credentials without force', async () => {
    const name = await app.newBackend()
    expect((await app.admin('DELETE', `/v1/admin/backends/${name}`)).status).toBe(204)
  })

  test('takes nothing over from a deleted backend of the same name', async () => {
    const name = await app.newBackend({ name: 'reborn' })
    const agent = await app.newAgent({ scopes: [name] })
    const jwks = () => app.as(undefined).get('/backends/reborn/.well-known/jwks.json')
    const { id } = (await agent.client.post(`/v1/credentials/${name}`)).body
    const before = (await jwks()).text
    await app.admin('DELETE', `/v1/admin/backends/${name}?force=true`)
    await app.newBackend({ name: 'reborn' })
    expect((await jwks()).text).not.toBe(before)
    expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
  })

  test('records every change in the audit', async () => {
    const name = await app.newBackend()
    await app.admin('PUT', `/v1/admin/backends/${name}`, { description: 'other' })
    await app.admin('DELETE', `/v1/admin/backends/${name}`)
    const { body } = await app.admin('GET', `/v1/admin/audit?backend=${name}`)
    expect(body.map((entry: { action: string }) => entry.action)).toEqual([
      'backend.deleted',
      'backend.changed',
      'backend.created',
    ])
  })

  test('lists the kinds with the schemas of their configuration and the marks of their secrets', async () => {
    const { body } = await app.admin('GET', '/v1/admin/kinds')
    const jwt = body.find((kind: { type: string }) => kind.type === 'jwt')
    expect(jwt.config.properties.signing_key['x-secret']).toBe(true)
    expect(jwt.revocation).toBe('expiry_only')
    expect(body.map((kind: { type: string }) => kind.type)).toEqual(
      expect.arrayContaining(['jwt', 'postgres']),
    )
  })
})
