import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type Reply, type TestApp } from '../support/app.ts'
import { callAsPage, newPerson } from '../support/person.ts'
import {
  attempt,
  begin,
  finish,
  logIn,
  NAME,
  OTHER,
  type SsoWorld,
  setCookie,
  startSsoWorld,
  stateOf,
} from '../support/sso-person.ts'
import type { SsoServer } from '../support/sso-server.ts'

const MANY = Array.from({ length: 300 }, (_, n) => `group-${n}`)
let world: SsoWorld
let app: TestApp
let provider: SsoServer
let other: SsoServer
beforeAll(async () => {
  world = await startSsoWorld()
  ;({ app, provider, other } = world)
})
afterAll(() => world?.close())

const ME = '/v1/admin/me'
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0] as {
    actor: string
    scopes: string[] | null
    details: Record<string, unknown>
  }
const codeOf = ({ status, body }: Reply) => [status, body.error.code]

describe('a login', () => {
  test('is offered, and gives a session with what the mapping gives', async () => {
    const ways = await callAsPage(app, 'GET', '/v1/console/login')
    expect(ways.body).toEqual({ sso: [{ name: NAME }, { name: OTHER }] })
    const alice = await logIn(app, provider, 'alice')
    expect(Object.keys(alice.reply.body)).toEqual(['key', 'expires_at'])
    expect(stateOf(alice.reply)).toBe('mayfly-sso-state=')
    const me = (await alice.call('GET', ME)).body
    expect(me).toMatchObject({
      name: 'Alice',
      email: 'alice@example.com',
      scopes: ['admin:*'],
      backend_scopes: ['*'],
      sso: { provider: NAME, issuer: provider.issuer, subject: 'alice' },
      session: { method: 'sso', may_register_until: null },
    })
    expect(await newest('session.started')).toMatchObject({
      actor: 'operator:alice@example.com',
      scopes: ['admin:*'],
      details: { method: 'sso', provider: NAME, issuer: provider.issuer, subject: 'alice', actor_id: me.id },
    })
    const again = await logIn(app, provider, 'alice')
    expect((await again.call('GET', ME)).body.id).toBe(me.id)
    const [session] = (await alice.call('GET', `/v1/admin/sessions?operator=${me.id}`)).body
    expect(session).toMatchObject({ method: 'sso', email: 'alice@example.com' })
  })

  test('begins with PKCE, state and nonce, and a sealed cookie for ten minutes', async () => {
    const reply = await callAsPage(app, 'POST', '/v1/console/login/sso', { provider: NAME })
    const query = Object.fromEntries(new URL(reply.body.url).searchParams)
    expect(query).toEqual({
      client_id: 'mayfly',
      response_type: 'code',
      redirect_uri: 'https://mayfly.test/console/sso',
      scope: 'openid profile email groups',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    const cookie = reply.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(
      /^mayfly-sso-state=s1\.1\.[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    )
    expect(cookie).not.toContain(query['state'])
  })

  test.each<[string, unknown, string[] | undefined]>([
    ['a list', ['x', 'Auditors'], ['admin:audit:read']],
    ['one text', 'Auditors', ['admin:audit:read']],
    ['300 groups', MANY, ['admin:audit:read']],
    ['two that give something', ['readers', 'Auditors'], ['admin:audit:read', 'admin:agents:read']],
    ['a list with what is no text', [null, 7, { a: 1 }, 'Auditors'], ['admin:audit:read']],
    ['the same in another case', ['auditors', 'ADMINS', 'Admins'], undefined],
    ['with a space behind', ['Auditors '], undefined],
    ['one text with commas', 'admins,Auditors', undefined],
    ['an object', { admins: true }, undefined],
    ['an empty list', [], undefined],
    ['nothing', undefined, undefined],
  ])('groups: %s', async (_, groups, scopes) => {
    provider.people.set('g', { name: 'G', groups })
    if (scopes !== undefined) {
      const me = (await (await logIn(app, provider, 'g')).call('GET', ME)).body
      expect(me.scopes).toEqual(scopes)
      return
    }
    const refused = await attempt(app, provider, 'g')
    expect(codeOf(refused)).toEqual([403, 'not_allowed'])
    expect(refused.body.error.message).toContain('in its setting sso, under groups of "Example SSO"')
    expect(refused.body.error.message).not.toMatch(/admins|Auditors|readers/)
    expect(setCookie(refused, '__Host-mayfly')).toBeUndefined()
    await eventually(async () =>
      expect((await newest('auth.failed')).details).toMatchObject({ reason: 'sso_no_scopes' }),
    )
  })

  test('says that the provider left the groups out', async () => {
    provider.people.set('g', { _claim_names: { groups: 'src1' } })
    expect((await attempt(app, provider, 'g')).body.error.message).toContain('left your groups out')
  })

  test.each<[string, Record<string, unknown>, string | undefined]>([
    ['verified', { email: 'Bob@Example.com', email_verified: true }, 'bob@example.com'],
    ['verified in words', { email: 'bob@example.com', email_verified: 'true' }, 'bob@example.com'],
    ['not verified', { email: 'bob@example.com', email_verified: false }, undefined],
    ['not verified in words', { email: 'bob@example.com', email_verified: 'false' }, undefined],
    ['without a word about that', { email: 'bob@example.com' }, undefined],
    ['verified by a number', { email: 'bob@example.com', email_verified: 1 }, undefined],
    ['no address', { email: 'bob\n@example.com', email_verified: true }, undefined],
    ['not a text', { email: ['bob@example.com'], email_verified: true }, undefined],
  ])('e-mail: %s', async (_, claims, email) => {
    provider.people.set('bob', { name: 'Bob', groups: ['admins'], ...claims })
    const bob = await logIn(app, provider, 'bob')
    const me = (await bob.call('GET', ME)).body
    expect(me.email).toBe(email)
    const { actor } = await newest('session.started')
    expect(actor).toBe(`operator:${email ?? `${provider.issuer}#bob`}`)
    const shown = (await app.local.get(`/v1/admin/operators/${me.id}`)).body
    expect(shown.email).toBe(email ?? null)
  })

  test.each<[string, unknown, string]>([
    ['that may be shown', 'Zoë Ω', 'Zoë Ω'],
    ['with a control character', 'a\u0007b', 'named'],
    ['that turns the text around', 'a\u202eb', 'named'],
    ['that is too long', 'x'.repeat(129), 'named'],
    ['that is no text', { a: 1 }, 'named'],
  ])('a name %s', async (_, name, expected) => {
    provider.people.set('named', { name, groups: ['admins'] })
    expect((await (await logIn(app, provider, 'named')).call('GET', ME)).body.name).toBe(expected)
  })

  test('takes the claims from the userinfo endpoint where the id token has none, and posts the secret', async () => {
    const alice = await logIn(app, other, 'alice', OTHER)
    expect(other.seen).toContain('/me')
    expect((await alice.call('GET', ME)).body).toMatchObject({
      email: 'alice@example.com',
      scopes: ['admin:*'],
    })
  })

  test('of the same subject at a second provider is another person, and so is an invited one with the address', async () => {
    const invited = await newPerson(app, { email: 'alice@example.com' })
    const ids = [invited.id]
    for (const [server, name] of [
      [provider, NAME],
      [other, OTHER],
    ] as const) {
      const me = (await (await logIn(app, server, 'alice', name)).call('GET', ME)).body
      expect(me.sso.issuer).toBe(server.issuer)
      ids.push(me.id)
    }
    expect(new Set(ids).size).toBe(3)
    expect((await app.local.get('/v1/admin/operators/alice@example.com')).body.id).toBe(invited.id)
  })

  test('that gives less takes nothing from the session before, and the next has less', async () => {
    provider.people.set('carol', { name: 'Carol', groups: ['admins'] })
    const before = await logIn(app, provider, 'carol')
    provider.people.set('carol', { name: 'Caroline', groups: ['readers'] })
    const after = await logIn(app, provider, 'carol')
    expect((await before.call('GET', '/v1/admin/operators')).status).toBe(200)
    expect((await after.call('GET', '/v1/admin/operators')).status).toBe(403)
    expect((await after.call('GET', '/v1/admin/agents')).status).toBe(200)
    const { id } = (await after.call('GET', ME)).body
    expect((await app.local.get(`/v1/admin/operators/${id}`)).body).toMatchObject({
      name: 'Caroline',
      scopes: ['admin:agents:read'],
    })
  })

  test('of one person twice at once makes one operator', async () => {
    provider.people.set('twins', { groups: ['admins'] })
    provider.user = 'twins'
    const begun = await Promise.all([begin(app), begin(app), begin(app)])
    const answers = []
    for (const { url } of begun) answers.push(await provider.logIn(url))
    const done = await Promise.all(answers.map((answer, n) => finish(app, answer, begun[n]?.cookie ?? '')))
    expect(done.map(({ status }) => status)).toEqual([200, 200, 200])
    const all = (await app.local.get('/v1/admin/operators')).body as { sso: { subject: string } | null }[]
    expect(all.filter(({ sso }) => sso?.subject === 'twins')).toHaveLength(1)
  })
})

test('an unknown provider is no provider', async () => {
  for (const provider of ['example sso', 'x', '__proto__', 'constructor']) {
    const reply = await callAsPage(app, 'POST', '/v1/console/login/sso', { provider })
    expect(codeOf(reply)).toEqual([404, 'not_found'])
  }
})

describe('a person of single sign-on', () => {
  test('cannot be changed or invited, has no links or passkeys, and can be removed', async () => {
    provider.people.set('dora', { name: 'Dora', groups: ['admins'] })
    const dora = await logIn(app, provider, 'dora')
    const { id } = (await dora.call('GET', ME)).body
    const at = `/v1/admin/operators/${id}`
    for (const reply of [
      await app.local.patch(at, { scopes: [] }),
      await app.local.patch(at, { name: 'X' }),
      await app.local.post(`${at}/invitation`),
      await app.local.post('/v1/admin/console/links', { operator: id }),
      await dora.call('POST', '/v1/console/passkeys/options'),
    ])
      expect(codeOf(reply)).toEqual([403, 'not_allowed'])
    expect((await app.local.delete(at)).status).toBe(204)
    expect((await dora.call('GET', ME)).status).toBe(401)
    const again = await logIn(app, provider, 'dora')
    expect((await again.call('GET', ME)).body.id).not.toBe(id)
  })

  test('is never the last operator with admin:*', async () => {
    const all = (await app.local.get('/v1/admin/operators')).body as { id: string; sso: unknown }[]
    const invited = all.filter(({ sso }) => sso === null)
    const last = await newPerson(app)
    for (const { id } of invited) await app.local.delete(`/v1/admin/operators/${id}`)
    await logIn(app, provider, 'alice')
    const refused = await last.act('DELETE', `/v1/admin/operators/${last.id}`)
    expect(codeOf(refused)).toEqual([409, 'conflict'])
    expect(refused.body.error.message).toContain('the last operator with admin:*')
  })

  test('keeps the session for twelve hours at most', async () => {
    const alice = await logIn(app, provider, 'alice')
    const { expires_at: until } = alice.reply.body
    const { session } = (await alice.call('GET', ME)).body
    expect(session.expires_at).toBe(until)
    expect(Date.parse(until) - Date.now()).toBeLessThanOrEqual(12 * 3_600_000)
  })
})
