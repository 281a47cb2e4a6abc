import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../cli/support.ts'
import type { Reply, TestApp } from '../support/app.ts'
import { callAsPage } from '../support/person.ts'
import {
  confirmationOf,
  finish,
  logIn,
  type SsoPerson,
  type SsoWorld,
  startSsoWorld,
  stateOf,
} from '../support/sso-person.ts'
import type { SsoServer } from '../support/sso-server.ts'

let world: SsoWorld
let app: TestApp
let provider: SsoServer
let alice: SsoPerson
beforeAll(async () => {
  world = await startSsoWorld()
  ;({ app, provider } = world)
})
afterAll(() => world?.close())
beforeEach(async () => {
  alice = await logIn(app, provider, 'alice')
})
afterEach(() => {
  provider.forge = undefined
})

let count = 0
const invite = () => {
  count += 1
  return { email: `guest-${count}@example.com`, scopes: ['admin:audit:read'] }
}
const PATH = '/v1/admin/operators'
const codeOf = ({ status, body }: Reply) => [status, body.error.code]

/** Asks for something that must be confirmed. */
async function ask(body: object): Promise<{ challenge: string; url: string; provider: string }> {
  const reply = await alice.call('POST', PATH, body)
  expect(codeOf(reply)).toEqual([403, 'confirmation_required'])
  return reply.body.error.options.sso
}

/** As the page that the refusal names: begins, logs in again as `user`, and finishes. */
async function confirm(challenge: string, user = 'alice', person = alice): Promise<Reply> {
  const begun = await person.call('POST', '/v1/console/confirm/sso', { challenge })
  if (begun.status !== 200) return begun
  const query = new URL(begun.body.url).searchParams
  expect([query.get('max_age'), query.get('prompt'), query.get('nonce')]).toEqual(['0', 'login', challenge])
  provider.user = user
  return finish(app, await provider.logIn(begun.body.url), stateOf(begun))
}

const act = (body: object, challenge: string) => alice.call('POST', PATH, body, confirmationOf(challenge))

describe('a confirmation by another login', () => {
  test('confirms exactly one request, once, and the entry says by what', async () => {
    const body = invite()
    const { challenge, url, provider: named } = await ask(body)
    expect(url).toBe(`https://mayfly.test/console/sso?confirm=${challenge}`)
    expect(named).toBe('Example SSO')
    const confirmed = await confirm(challenge)
    expect([confirmed.status, confirmed.body]).toEqual([200, { confirmed: challenge }])
    expect((await act(body, challenge)).status).toBe(200)
    expect(codeOf(await act({ ...body, email: 'b@example.com' }, challenge))).toEqual([
      403,
      'confirmation_required',
    ])
    const [entry] = (await app.local.get('/v1/admin/audit?action=operator.invited&limit=1')).body
    expect(entry.details.confirmation).toEqual({
      request: expect.stringContaining(body.email),
      nonce: challenge,
      sso: {
        issuer: provider.issuer,
        subject: 'alice',
        audience: 'mayfly',
        authTime: expect.any(Number),
        issuedAt: expect.any(Number),
      },
    })
    expect(JSON.stringify(entry)).not.toContain('eyJhbGci')
  })

  test('does not confirm another request, another session or another person', async () => {
    const body = invite()
    const { challenge } = await ask(body)
    const second = await logIn(app, provider, 'alice')
    expect(codeOf(await confirm(challenge, 'alice', second))).toEqual([409, 'conflict'])
    expect((await confirm(challenge)).status).toBe(200)
    const other = await act({ ...body, scopes: ['admin:*'] }, challenge)
    expect(codeOf(other)).toEqual([403, 'confirmation_required'])
    const elsewhere = await second.call('POST', PATH, body, confirmationOf(challenge))
    expect(codeOf(elsewhere)).toEqual([403, 'confirmation_required'])
    expect((await act(body, challenge)).status).toBe(200)
  })

  test('by somebody else at the provider confirms nothing', async () => {
    provider.people.set('mallory', { groups: ['admins'] })
    const body = invite()
    const { challenge } = await ask(body)
    const refused = await confirm(challenge, 'mallory')
    expect(codeOf(refused)).toEqual([401, 'unauthorized'])
    expect(refused.body.error.message).toContain('Somebody else logged in')
    expect(codeOf(await act(body, challenge))).toEqual([403, 'confirmation_required'])
  })

  test.each<[string, Record<string, unknown>]>([
    ['of an hour ago', { auth_time: Math.floor(Date.now() / 1_000) - 3_600 }],
    ['without its time', { auth_time: undefined }],
  ])('a login %s confirms nothing', async (_, claims) => {
    const body = invite()
    const { challenge } = await ask(body)
    provider.forge = (token) => token.signed(claims)
    const refused = await confirm(challenge)
    expect(codeOf(refused)).toEqual([401, 'unauthorized'])
    expect(refused.body.error.message).toContain('did not ask you to log in again')
    expect(codeOf(await act(body, challenge))).toEqual([403, 'confirmation_required'])
  })

  test.each<[string, Record<string, unknown>]>([
    ['another nonce', { nonce: 'x'.repeat(43) }],
    ['another subject in the token', { sub: 'bob' }],
    ['a time that is a text', { auth_time: 'now' }],
  ])('with %s confirms nothing', async (_, claims) => {
    const { challenge } = await ask(invite())
    provider.forge = (token) => token.signed(claims)
    expect(codeOf(await confirm(challenge))).toEqual([401, 'unauthorized'])
  })

  test('that nobody made confirms nothing: the challenge alone is no confirmation', async () => {
    const body = invite()
    const { challenge } = await ask(body)
    expect(codeOf(await act(body, challenge))).toEqual([403, 'confirmation_required'])
  })

  test.each<[unknown]>([[7], [null], [''], ['x'], [{ a: 1 }], [['x']]])(
    '%j is no challenge',
    async (challenge) => {
      provider.people.set('bob', { groups: ['admins'] })
      const bob = await logIn(app, provider, 'bob')
      const header = Buffer.from(JSON.stringify({ sso: { challenge } })).toString('base64url')
      const reply = await bob.call('POST', PATH, invite(), { 'mayfly-confirmation': header })
      expect(codeOf(reply)).toEqual([403, 'confirmation_required'])
    },
  )

  test('is too late after five minutes', async () => {
    const body = invite()
    const { challenge } = await ask(body)
    expect((await confirm(challenge)).status).toBe(200)
    app.advance(5 * 60_000 + 1)
    expect(codeOf(await act(body, challenge))).toEqual([403, 'confirmation_required'])
    expect(codeOf(await confirm(challenge))).toEqual([409, 'conflict'])
    app.advance(-5 * 60_000 - 1)
  })

  test('is no login: it starts no session, and a login confirms nothing', async () => {
    const { challenge } = await ask(invite())
    const reply = await confirm(challenge)
    expect(reply.headers.get('set-cookie')).not.toContain('__Host-mayfly')
    expect(codeOf(await confirm(challenge))).toEqual([409, 'conflict'])
    const begun = await callAsPage(app, 'POST', '/v1/console/confirm/sso', { challenge })
    expect(codeOf(begun)).toEqual([401, 'unauthorized'])
  })

  test('is checked by `mayfly audit verify-confirmation`', async () => {
    const body = invite()
    const { challenge } = await ask(body)
    await confirm(challenge)
    await act(body, challenge)
    const [entry] = (await app.local.get('/v1/admin/audit?action=operator.invited&limit=1')).body
    const cli = (...argv: string[]) =>
      runCli(['audit', 'verify-confirmation', ...argv, '--data-dir', app.directory], { env: {} })
    const run = await cli(entry.id)
    expect(run).toMatchObject({ code: 0, stderr: '' })
    expect(run.stdout).toContain('yes, by another login of this operator, for exactly this request')
    expect(run.stdout).toContain('cannot be checked without trusting the server')
    expect(JSON.parse((await cli(entry.id, '--json')).stdout)).toMatchObject({
      confirmed: true,
      sso: { issuer: provider.issuer, subject: 'alice' },
      request: { method: 'POST', path: PATH, body },
    })
  })
})
