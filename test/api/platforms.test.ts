import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newSigner } from '../support/identity-tokens.ts'
import { bear, exchange, workload } from '../support/keyless.ts'

const ISSUER = 'https://agents.test'
const AUDIENCE = 'https://mayfly.test'
const acme = newSigner('ES256')
const other = newSigner('EdDSA')
const YAML = JSON.stringify({
  platforms: [
    {
      name: 'acme',
      issuer: ISSUER,
      audience: AUDIENCE,
      jwks: { keys: [acme.jwk] },
      scopes: [
        { claim: 'groups', value: 'readers', scopes: ['orders:read'] },
        { claim: 'realm/role', value: 'chief', scopes: ['orders:*'] },
      ],
    },
    { name: 'other', issuer: 'https://others.test', audience: AUDIENCE, jwks: { keys: [other.jwk] } },
  ],
  policies: [{ name: 'all', pattern: '*', scopes: ['orders:*'], auto_approve: true }],
})

describe.each(['sqlite', 'postgres'] as const)('platforms on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect, yaml: YAML })
    await app.newBackend({ name: 'orders' })
  })
  afterAll(() => app.close())

  const token = (sub: string, claims: Record<string, unknown> = {}, of = acme) =>
    workload(
      app,
      { iss: of === acme ? ISSUER : 'https://others.test', aud: AUDIENCE, sub, ...claims },
      300,
      of,
    )
  const logIn = async (sub: string, claims: Record<string, unknown> = {}, of = acme) => {
    const reply = await exchange(app, token(sub, claims, of))
    expect([reply.status, reply.body]).toEqual([200, reply.body])
    const id = String(decodeJwt(reply.body.access_token).sub)
    return { ...reply.body, id, client: app.as(reply.body.access_token) }
  }
  const claimOf = async (id: string) =>
    (await app.local.get('/v1/admin/pending?limit=1000')).body.find(
      (one: { agent_id?: string }) => one.agent_id === id,
    )
  const decide = (id: string, what: 'approve' | 'reject', body: unknown = {}) =>
    app.local.post(`/v1/admin/pending/${id}/${what}`, body)
  const agentOf = async (id: string) =>
    (await app.local.get('/v1/admin/agents?limit=1000')).body.find((one: { id: string }) => one.id === id)

  test('one that was never seen gets a token that permits nothing, and waits; what it is given, its next login has', async () => {
    const first = await logIn('agent-1', { groups: ['writers'], name: 'Nightly' })
    expect(first.scope).toBe('')
    expect((await first.client.get('/v1/status')).body).toMatchObject({
      id: first.id,
      scopes: [],
      pending_requests: [],
    })
    expect((await first.client.post('/v1/credentials/orders', { scopes: ['orders:read'] })).status).toBe(403)
    const claim = await claimOf(first.id)
    expect(claim).toMatchObject({
      type: 'claim',
      status: 'pending',
      scopes: [],
      may_approve: true,
      public_key_fingerprint: null,
      metadata: {
        platform: 'acme',
        issuer: ISSUER,
        subject: 'agent-1',
        claims: { groups: ['writers'], name: 'Nightly' },
      },
    })
    expect(claim).not.toHaveProperty('name_taken')
    expect(claim).not.toHaveProperty('note')
    expect((await decide(claim.id, 'approve')).status).toBe(400)
    const approved = await decide(claim.id, 'approve', { scopes: ['orders:read'] })
    expect([approved.status, approved.body.status, approved.body.scopes]).toEqual([
      200,
      'approved',
      ['orders:read'],
    ])
    // A token has what its agent had when it was issued.
    expect((await first.client.post('/v1/credentials/orders', { scopes: ['orders:read'] })).status).toBe(403)
    const second = await logIn('agent-1')
    expect([second.id, second.scope]).toEqual([first.id, 'orders:read'])
    expect((await second.client.post('/v1/credentials/orders', { scopes: ['orders:read'] })).status).toBe(200)
    const entries = (await app.local.get(`/v1/admin/audit?agent=${first.id}`)).body.map(
      ({ action }: { action: string }) => action,
    )
    for (const action of [
      'agent.created',
      'enrollment.requested',
      'enrollment.approved',
      'agent.scopes_changed',
    ])
      expect(entries).toContain(action)
  })

  test('a mapping of claims gives scopes at once, and with other claims takes them, also from tokens that are out', async () => {
    const chief = await logIn('agent-2', { realm: { role: 'chief' } })
    expect(chief.scope).toBe('orders:*')
    expect(await claimOf(chief.id)).toBeUndefined()
    expect((await chief.client.post('/v1/credentials/orders', { scopes: ['orders:write'] })).status).toBe(200)
    expect((await logIn('agent-2', { groups: 'readers' })).scope).toBe('orders:read')
    expect((await chief.client.post('/v1/credentials/orders', { scopes: ['orders:write'] })).status).toBe(403)
    expect((await logIn('agent-2', { groups: 'Readers' })).scope).toBe('')
    expect(await claimOf(chief.id)).toMatchObject({ type: 'claim' })
  })

  test('the JWT bearer grant is the same login', async () => {
    const { id } = await logIn('agent-3')
    const { body } = await bear(app, token('agent-3'))
    expect(decodeJwt(body.access_token).sub).toBe(id)
  })

  test('asks for scopes that it does not hold in vain', async () => {
    const reply = await exchange(app, token('agent-4'), { scope: 'orders:read' })
    expect([reply.status, reply.body.error]).toEqual([400, 'invalid_scope'])
    const known = await logIn('agent-4')
    expect((await exchange(app, token('agent-4'), { scope: 'admin' })).body.error).toBe('invalid_scope')
    expect((await agentOf(known.id)).scopes).toEqual([])
  })

  test('subjects that differ, and platforms that differ, are agents that differ', async () => {
    const subjects = [
      'x',
      'X',
      'x.',
      'acme-x',
      '../x',
      'x%20',
      '__proto__',
      'constructor',
      'é',
      'e\u0301',
      `${'x'.repeat(250)}`,
    ]
    const ids = new Set<string>()
    for (const subject of subjects) ids.add((await logIn(subject)).id)
    ids.add((await logIn('x', {}, other)).id)
    expect(ids.size).toBe(subjects.length + 1)
  })

  test('a token of another platform, or of none, gets nothing', async () => {
    const forged = workload(app, { iss: ISSUER, aud: AUDIENCE, sub: 'agent-1' }, 300, other)
    const foreign = workload(app, { iss: 'https://nobody.test', aud: AUDIENCE, sub: 'agent-1' }, 300, acme)
    const twoAudiences = workload(app, { iss: ISSUER, aud: ['x', AUDIENCE], sub: 'agent-1' }, 300, acme)
    for (const bad of [forged, foreign, twoAudiences])
      expect((await exchange(app, bad)).body.error).toBe('invalid_grant')
    const used = token('agent-1')
    await exchange(app, used)
    expect((await exchange(app, used)).body.error).toBe('invalid_grant')
  })

  test('hostile claims are shown as they are, in part, and change nothing else', async () => {
    const claims = {
      escape: '\u001b[31mred\u001b[0m\r\nnext line',
      bidi: '\u202eevil\u2066',
      html: '<img src=x onerror=alert(1)>',
      nested: { a: { b: { c: { d: { e: 1 } } } } },
      big: 'x'.repeat(5_000),
      scopes: ['admin'],
      type: 'enroll',
      status: 'approved',
    }
    const { id } = await logIn('hostile', claims)
    const claim = await claimOf(id)
    expect(claim).toMatchObject({ type: 'claim', status: 'pending', scopes: [] })
    expect(claim.metadata.claims).toMatchObject({
      escape: claims.escape,
      bidi: claims.bidi,
      html: claims.html,
    })
    expect(claim.metadata.claims).not.toHaveProperty('big')
    expect(claim.metadata.claims).not.toHaveProperty('nested')
    expect(claim.metadata.claims_left_out).toBe(2)
    const { status } = await app.local.get(`/v1/admin/pending/${claim.id}`)
    expect(status).toBe(200)
  })

  test('claims that have the names of a prototype make no token, or an agent without rights', async () => {
    const named = JSON.parse(
      '{"__proto__":{"groups":["readers"]},"constructor":{"groups":"readers"},"toString":1}',
    )
    const reply = await exchange(app, token('prototype', named))
    if (reply.status !== 200) return expect(reply.body.error).toBe('invalid_grant')
    expect(reply.body.scope).toBe('')
    return expect((await app.local.get('/v1/admin/pending?limit=1000')).status).toBe(200)
  })

  test.each([
    ['an escape sequence', '\u001b[2Jx'],
    ['a NUL', 'a\u0000b'],
    ['a line', 'a\nb'],
    ['an override of the direction', '\u202eevil'],
    ['nothing', ''],
    ['16 KiB', 'x'.repeat(11_000)],
    ['half a character', 'a\ud800'],
  ])('a subject with %s is refused, or is one agent whose name is plain', async (_, subject) => {
    const reply = await exchange(app, token(subject))
    if (reply.status === 200) {
      const { name } = await agentOf(String(decodeJwt(reply.body.access_token).sub))
      expect(name).toMatch(/^acme-[a-z2-7]{12}$/)
    } else expect(reply.body.error).toBe('invalid_grant')
  })

  test('a claim that is rejected leaves the agent without rights, and does not come back', async () => {
    const { id } = await logIn('agent-5')
    const claim = await claimOf(id)
    const rejected = await decide(claim.id, 'reject', { reason: 'not ours' })
    expect(rejected.body).toMatchObject({ status: 'rejected', decision_note: 'not ours' })
    expect((await logIn('agent-5')).scope).toBe('')
    expect(await claimOf(id)).toBeUndefined()
    expect((await decide(claim.id, 'approve', { scopes: ['orders:read'] })).status).toBe(409)
  })

  test('a claim ends with its agent', async () => {
    const { id } = await logIn('agent-6')
    const claim = await claimOf(id)
    const { name } = await agentOf(id)
    expect((await app.local.delete(`/v1/admin/agents/${name}`)).status).toBe(204)
    expect(await claimOf(id)).toBeUndefined()
    expect((await decide(claim.id, 'approve', { scopes: ['orders:read'] })).body.error.code).toBe('gone')
    expect((await logIn('agent-6')).id).not.toBe(id)
  })

  test('an administrator who holds a part gives that part', async () => {
    const { id } = await logIn('agent-7')
    const claim = await claimOf(id)
    const boss = await app.newAgent({ name: 'boss', scopes: ['admin:enrollments:*', 'orders:read'] })
    const give = (scopes: readonly string[]) =>
      boss.client.post(`/v1/admin/pending/${claim.id}/approve`, { scopes, expires_in: '2h' })
    expect((await give(['orders:write'])).body.error.code).toBe('insufficient_scope')
    expect((await give(['orders:read'])).body).toMatchObject({ expires_in: '2h', decided_by: boss.id })
    expect((await logIn('agent-7')).scope).toBe('orders:read')
  })

  test('nobody can take the name of an agent of a platform', async () => {
    const taken = { name: 'acme-abcdefghijkl', scopes: [] }
    expect((await app.local.post('/v1/admin/agents', taken)).status).toBe(409)
  })
})
