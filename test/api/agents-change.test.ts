import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS } from '../../src/domain/limits.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

const POLICY = `policies:
  - { name: ci, pattern: 'ci-*', scopes: [orders], max_agent_lifetime: 24h }`

describe.each(DIALECTS)('changing an agent, on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    await app.newBackend({ name: 'stock' })
  })
  afterAll(() => app.close())

  const change = (name: string, body: unknown) => app.admin('PATCH', `/v1/admin/agents/${name}`, body)
  const scopesOf = async ({ client }: NewAgent) => (await client.get('/v1/status')).body.scopes
  const issue = async ({ client }: NewAgent, backend: string, scopes: string[]) =>
    (await client.post('/api/v1/credentials', { backend, scopes })).body.id as string
  const statusOf = async ({ client }: NewAgent, id: string) =>
    (await client.get(`/api/v1/credentials/${id}`)).body.status

  test('scopes: added, removed and replaced, at once for every login', async () => {
    const agent = await app.newAgent({ scopes: ['orders:read'] })
    const jwt = app.as(await app.accessToken(agent))
    expect((await agent.client.post('/v1/credentials/stock')).status).toBe(403)
    const added = await change(agent.name.toUpperCase(), { add_scopes: ['stock', 'orders:write'] })
    expect(added.status).toBe(200)
    expect(added.body).toEqual({
      id: agent.id,
      name: agent.name,
      scopes: ['orders:read', 'stock', 'orders:write'],
      created_at: agent.created_at,
      owner: 'local',
      live: 0,
      last_used: expect.anything(),
      last_used_from: '127.0.0.1',
      expires_at: null,
      policy: null,
      signing_key_id: expect.stringMatching(/^[0-9A-F]{16}$/),
    })
    expect((await agent.client.post('/v1/credentials/stock')).status).toBe(200)
    await change(agent.name, { remove_scopes: ['orders:read', 'stock'] })
    expect(await scopesOf(agent)).toEqual(['orders:write'])
    expect((await jwt.get('/v1/status')).body.scopes).toEqual([])
    expect((await agent.client.post('/v1/credentials/stock')).status).toBe(403)
    expect((await change(agent.name, { scopes: [] })).body.scopes).toEqual([])
    expect((await change(agent.name, { scopes: ['stock:a'] })).body.scopes).toEqual(['stock:a'])
    const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.name}&action=agent.scopes_changed`)
    expect(body.map((entry: { actor: string; details: unknown }) => [entry.actor, entry.details])).toEqual([
      ['local', { change: 'set', added: ['stock:a'], removed: [] }],
      ['local', { change: 'set', added: [], removed: ['orders:write'] }],
      ['local', { change: 'set', added: [], removed: ['orders:read', 'stock'] }],
      ['local', { change: 'set', added: ['stock', 'orders:write'], removed: [] }],
    ])
  })

  test('scopes that were approved later are removed like others', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    for (const wish of [{ scopes: ['stock:a', 'stock:b'] }, { scopes: ['stock:c'], expires_in: '1h' }]) {
      const { id } = (await agent.client.post('/v1/request', wish)).body
      await app.admin('POST', `/v1/admin/pending/${id}/approve`)
    }
    await change(agent.name, { remove_scopes: ['stock:a', 'stock:c'] })
    expect(await scopesOf(agent)).toEqual(['orders', 'stock:b'])
    await change(agent.name, { scopes: ['orders:read'] })
    expect(await scopesOf(agent)).toEqual(['orders:read'])
  })

  test('credentials beyond the new scopes are listed, and revoked on request', async () => {
    const agent = await app.newAgent({ scopes: ['orders', 'stock'] })
    const [kept, cut, gone] = [
      await issue(agent, 'orders', ['read']),
      await issue(agent, 'orders', ['orders:write']),
      await issue(agent, 'stock', ['read']),
    ]
    const listed = await change(agent.name, { scopes: ['orders:read', 'stock:read'] })
    expect(listed.body.out_of_scope).toEqual([
      {
        id: cut,
        backend: 'orders',
        scopes: ['orders:write'],
        expires_at: expect.any(String),
        status: 'active',
      },
    ])
    expect(await statusOf(agent, cut)).toBe('active')
    const revoked = await change(agent.name, { remove_scopes: ['stock:read'], revoke: true })
    expect(
      revoked.body.out_of_scope.map((one: { id: string; status: string }) => [one.id, one.status]),
    ).toEqual([
      [cut, 'revoked'],
      [gone, 'revoked'],
    ])
    expect(await Promise.all([kept, cut, gone].map((id) => statusOf(agent, id)))).toEqual([
      'active',
      'revoked',
      'revoked',
    ])
    const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.name}&action=credential.revoked`)
    expect(body.map((entry: { actor: string; details: unknown }) => [entry.actor, entry.details])).toEqual([
      ['local', { reason: 'revoked' }],
      ['local', { reason: 'revoked' }],
    ])
    expect((await change(agent.name, { revoke: true })).body.out_of_scope).toBeUndefined()
  })

  test('a credential whose issue overtakes the change is revoked with the others', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    await issue(agent, 'orders', ['read'])
    const { store } = app.core
    const { commit } = store
    let late: string | undefined
    store.commit = async (steps, options) => {
      if (late === undefined && steps.some((step) => step.op === 'run' && step.sql.includes('"scopes" ='))) {
        late = 'under way'
        late = await issue(agent, 'orders', ['write'])
      }
      return commit(steps, options)
    }
    try {
      const { body } = await change(agent.name, { scopes: [], revoke: true })
      expect(body.out_of_scope).toHaveLength(2)
      expect(await statusOf(agent, late ?? '')).toBe('revoked')
    } finally {
      store.commit = commit
    }
  })

  test('expiry: set, extended, shortened and removed', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const end = async (body: unknown) => {
      const reply = await change(agent.name, body)
      return reply.body.expires_at === null ? null : Date.parse(reply.body.expires_at) - app.core.store.now()
    }
    expect(await end({ expires_in: '1h' })).toBeGreaterThan(HOUR_MS - 60_000)
    expect(await end({ expires_in: '48h' })).toBeGreaterThan(47 * HOUR_MS)
    expect(await end({ expires_at: null })).toBeNull()
    const at = new Date(app.core.store.now() + DAY_MS).toISOString()
    expect((await change(agent.name, { expires_at: at })).body.expires_at).toBe(at)
    expect((await agent.client.get('/v1/status')).body.expires_at).toBe(at)
    const { body } = await agent.client.post('/v1/credentials/orders', { ttl: '24h' })
    expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(Date.parse(at))
    const entries = (await app.admin('GET', `/v1/admin/audit?agent=${agent.name}&action=agent.changed`)).body
    expect(entries[0].details).toEqual({ expires_at: Date.parse(at) })
  })

  test('audiences and description', async () => {
    const agent = await app.newAgent({ scopes: [] })
    const { body } = await change(agent.name, { audiences: ['sts.example'], description: 'nightly report' })
    expect(body).toMatchObject({ audiences: ['sts.example'], description: 'nightly report' })
    const form = { grant_type: 'client_credentials', ...agent.oidc, audience: 'sts.example' }
    const token = () => fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
    expect((await token()).status).toBe(200)
    const cleared = (await change(agent.name, { audiences: [], description: '' })).body
    expect([cleared.audiences, cleared.description]).toEqual([undefined, undefined])
    expect((await token()).status).toBe(400)
    const made = await app.admin('POST', '/v1/admin/agents', { name: `d-${agent.name}`, description: 'new' })
    expect((await app.admin('GET', `/v1/admin/agents/${made.body.name}`)).body.description).toBe('new')
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['only revoke: false', { revoke: false }],
    ['scopes beside add_scopes', { scopes: [], add_scopes: ['a'] }],
    ['a scope added and removed', { add_scopes: ['a'], remove_scopes: ['a'] }],
    ['a scope that is not held', { remove_scopes: ['nope'] }],
    ['a scope of no form', { add_scopes: ['a b'] }],
    ['two expiries', { expires_in: '1h', expires_at: null }],
    ['an expiry in the past', { expires_at: '2001-01-01T00:00:00Z' }],
    ['a day that does not exist', { expires_at: '2077-02-30T00:00:00Z' }],
    ['a time without a zone', { expires_at: '2077-02-03T00:00:00' }],
    ['an expiry far away', { expires_at: '9999-12-31T23:59:59Z' }],
    ['a lifetime of zero', { expires_in: '0s' }],
    ['an audience of no form', { audiences: ['a b'] }],
    ['a long description', { description: 'x'.repeat(1_025) }],
    ['a name', { name: 'other' }],
    ['a token', { token: 'ckr_x' }],
    ['scopes as text', { scopes: 'orders' }],
    ['null scopes', { scopes: null }],
    ['a list', []],
    ['no body', undefined],
  ])('refuses %s, and changes nothing', async (_, body) => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const reply = await change(agent.name, body)
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
    const shown = (await app.admin('GET', `/v1/admin/agents/${agent.name}`)).body
    expect(shown).toMatchObject({ scopes: ['orders'], expires_at: null })
  })

  test('does not bring back an agent that has expired', async () => {
    const agent = await app.newAgent({ expires_in: '1m' })
    app.advance(60_000)
    expect((await change(agent.name, { expires_at: null })).body.error.code).toBe('agent_not_found')
    expect((await change('nobody', { expires_at: null })).body.error.code).toBe('agent_not_found')
  })

  test('warns of scopes that name no backend, and of removed ones that a wider one still grants', async () => {
    const agent = await app.newAgent({ scopes: ['orders', 'orders:read'] })
    const added = await change(agent.name, {
      add_scopes: ['Orders:read', 'nope:x', '*:z', 'admin:agents:read'],
    })
    expect(added.body.warnings).toEqual([
      'The scope "Orders:read" names no backend: capital letters count, and the backend is called "orders".',
      'The scope "nope:x" names no backend: there is none called "nope".',
    ])
    const removed = await change(agent.name, { remove_scopes: ['orders:read'] })
    expect(removed.body.warnings).toEqual(['The agent still holds "orders:read", because it holds "orders".'])
  })

  test('of several changes at once, none is lost', async () => {
    const agent = await app.newAgent({ scopes: [] })
    const names = Array.from({ length: 4 }, (_, n) => `orders:r${n}`)
    const add = (scope: string) =>
      eventually(async () => expect((await change(agent.name, { add_scopes: [scope] })).status).toBe(200))
    await Promise.all(names.map(add))
    expect((await scopesOf(agent)).sort()).toEqual(names)
  })
})

describe('who may change an agent', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ yaml: POLICY })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())
  const change = (token: string, name: string, body: unknown) =>
    app.as(token).patch(`/v1/admin/agents/${name}`, body)
  const code = async (reply: ReturnType<typeof change>) => (await reply).body.error?.code

  test('nobody grants more than they hold, and anybody with the admin scope may take away', async () => {
    const admin = await app.newAgent({ scopes: ['admin:agents:write', 'orders'] })
    const agent = await app.newAgent({ scopes: ['orders', 'stock'] })
    expect((await change(admin.token, agent.name, { add_scopes: ['orders:write'] })).status).toBe(200)
    for (const body of [
      { add_scopes: ['stock:x', 'ledger'] },
      { scopes: ['*'] },
      { add_scopes: ['admin:*'] },
    ])
      expect(await code(change(admin.token, agent.name, body))).toBe('insufficient_scope')
    expect(await code(change(admin.token, agent.name, { audiences: ['sts.example'] }))).toBe(
      'insufficient_scope',
    )
    expect((await change(admin.token, agent.name, { remove_scopes: ['stock'] })).status).toBe(200)
    expect(await code(change(admin.token, agent.name, { add_scopes: ['stock'] }))).toBe('insufficient_scope')
    expect(await code(change(admin.token, admin.name, { add_scopes: ['admin:*'] }))).toBe(
      'insufficient_scope',
    )
    const narrow = await app.accessToken(admin, 'admin:agents:write')
    expect(await code(change(narrow, agent.name, { remove_scopes: ['orders'] }))).toBe('insufficient_scope')
    const reader = await app.newAgent({ scopes: ['admin:agents:read', 'orders'] })
    expect(await code(change(reader.token, agent.name, { scopes: [] }))).toBe('insufficient_scope')
  })

  test('an agent that ends extends no life beyond its own, and makes no time-limited scope permanent', async () => {
    const scopes = ['admin:agents:write', 'orders']
    const ending = await app.newAgent({ scopes, expires_in: '1h' })
    const agent = await app.newAgent({ scopes: ['orders'], expires_in: '10m' })
    expect((await change(ending.token, agent.name, { expires_in: '30m' })).status).toBe(200)
    for (const body of [{ expires_in: '2h' }, { expires_at: null }])
      expect(await code(change(ending.token, agent.name, body))).toBe('insufficient_scope')
    expect((await change(ending.token, agent.name, { expires_in: '5m' })).status).toBe(200)
    const lasting = await app.newAgent({ scopes: ['orders'] })
    expect(
      await code(change(ending.token, lasting.name, { add_scopes: ['orders:x', 'admin:agents:write'] })),
    ).toBe('insufficient_scope')
    const timed = await app.newAgent({ scopes: ['admin:agents:write'] })
    const { id } = (await timed.client.post('/v1/request', { scopes: ['orders'], expires_in: '1h' })).body
    await app.admin('POST', `/v1/admin/pending/${id}/approve`)
    expect(await code(change(timed.token, timed.name, { add_scopes: ['orders'] }))).toBe('insufficient_scope')
  })

  test('extending requires what the agent holds', async () => {
    const admin = await app.newAgent({ scopes: ['admin:agents:write', 'orders'] })
    const wider = await app.newAgent({ scopes: ['stock'], expires_in: '1h' })
    expect(await code(change(admin.token, wider.name, { expires_in: '2h' }))).toBe('insufficient_scope')
    expect((await change(admin.token, wider.name, { expires_in: '30m' })).status).toBe(200)
  })

  test('nobody extends the life of an agent beyond what its policy allows', async () => {
    const { newEnrollee } = await import('../support/enrollee.ts')
    const { body } = await app
      .as(undefined)
      .post('/v1/enroll', { name: 'ci-1', public_key: newEnrollee().publicKey })
    await app.admin('POST', `/v1/admin/pending/${body.id}/approve`)
    const patch = (changes: unknown) => app.admin('PATCH', '/v1/admin/agents/ci-1', changes)
    expect((await patch({ expires_in: '23h' })).status).toBe(200)
    for (const changes of [{ expires_in: '25h' }, { expires_at: null }]) {
      const refused = await patch(changes)
      expect([refused.status, refused.body.error.message]).toEqual([
        400,
        'The policy "ci" allows at most 24h from the creation of the agent.',
      ])
    }
  })
})
