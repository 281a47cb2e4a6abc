import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type Reply, type TestApp } from '../support/app.ts'
import { callAsPage } from '../support/person.ts'
import {
  attempt,
  begin,
  finish,
  NAME,
  OTHER,
  type SsoWorld,
  setCookie,
  startSsoWorld,
  stateOf,
} from '../support/sso-person.ts'
import type { IdToken, SsoServer } from '../support/sso-server.ts'

let world: SsoWorld
let app: TestApp
let provider: SsoServer
let other: SsoServer
beforeAll(async () => {
  world = await startSsoWorld()
  ;({ app, provider, other } = world)
})
afterAll(() => world?.close())

afterEach(() => {
  provider.forge = undefined
})

const codeOf = ({ status, body }: Reply) => [status, body.error.code]
/** A part of what people are told, by the reason in the denial. */
const SAID = {
  sso_state: 'was finished already, is too old, or was begun in another browser',
  sso_refused: 'did not log you in',
  sso_answer: 'not the answer of the provider to this login',
  sso_clock: 'The clock of the provider',
}

describe('a hostile answer', () => {
  const refused = async (reply: Reply, reason: keyof typeof SAID) => {
    expect(codeOf(reply)).toEqual([401, 'unauthorized'])
    expect(setCookie(reply, '__Host-mayfly')).toBeUndefined()
    expect(stateOf(reply)).toBe('mayfly-sso-state=')
    expect(reply.body.error.message).toContain(SAID[reason])
  }

  const now = () => Math.floor(Date.now() / 1_000)
  const unsigned = ({ text }: IdToken, alg: string) => {
    const header = Buffer.from(JSON.stringify({ alg })).toString('base64url')
    return `${header}.${text.split('.')[1]}.`
  }
  test.each<[string, (token: IdToken) => string, ('sso_answer' | 'sso_clock')?]>([
    ['with another nonce', (token) => token.signed({ nonce: 'x'.repeat(43) })],
    ['without a nonce', (token) => token.signed({ nonce: undefined })],
    ['for another audience', (token) => token.signed({ aud: 'another' })],
    ['for two audiences', (token) => token.signed({ aud: ['mayfly', 'another'] })],
    ['for two, and another party', (token) => token.signed({ aud: ['mayfly', 'b'], azp: 'b' })],
    ['of another issuer', (token) => token.signed({ iss: 'https://evil.test' })],
    ['of the same issuer with a slash', (token) => token.signed({ iss: `${provider.issuer}/` })],
    ['with alg none', (token) => unsigned(token, 'none')],
    ['with alg NONE', (token) => unsigned(token, 'NONE')],
    ['without alg', (token) => unsigned(token, undefined as never)],
    ['with HS256', (token) => token.signed({}, { alg: 'HS256' })],
    ['with an unknown key', (token) => token.signed({}, { kid: 'unknown' })],
    ['with another signature', ({ text }) => `${text.slice(0, -8)}AAAAAAAA`],
    ['with another signature in front', ({ text }) => `${text.replace(/\.([^.]{8})[^.]*$/, '.$1')}`],
    ['without a subject', (token) => token.signed({ sub: undefined })],
    ['with an empty subject', (token) => token.signed({ sub: '' })],
    ['with a subject of two lines', (token) => token.signed({ sub: 'a\nb' })],
    ['with a subject that is too long', (token) => token.signed({ sub: 'a'.repeat(256) })],
    ['with a subject that is a number', (token) => token.signed({ sub: 7 })],
    ['with a NUL in its subject', (token) => token.signed({ sub: 'a\0' })],
    ['that is no token', () => 'x'],
    ['that is expired', (token) => token.signed({ exp: now() - 6 }), 'sso_clock'],
    ['from the future', (token) => token.signed({ iat: now() + 60, exp: now() + 360 }), 'sso_clock'],
    ['not valid yet', (token) => token.signed({ nbf: now() + 60 }), 'sso_clock'],
  ])('an id token %s', async (_, forge, reason = 'sso_answer') => {
    provider.forge = forge
    await refused(await attempt(app, provider, 'alice'), reason)
  })

  test('an expired token is accepted within the tolerance of five seconds', async () => {
    provider.forge = (token) => token.signed({ exp: now() - 2 })
    expect((await attempt(app, provider, 'alice')).status).toBe(200)
  })

  test('with the answer of another provider (mix-up)', async () => {
    provider.user = 'alice'
    other.user = 'alice'
    const mine = await begin(app)
    const theirs = await begin(app, OTHER)
    const answer = new URLSearchParams(await other.logIn(theirs.url))
    answer.set('state', new URL(mine.url).searchParams.get('state') ?? '')
    expect(answer.get('iss')).toBe(other.issuer)
    const tokens = provider.seen.filter((path) => path === '/token').length
    await refused(await finish(app, String(answer), mine.cookie), 'sso_answer')
    // The code went to nobody.
    expect(provider.seen.filter((path) => path === '/token')).toHaveLength(tokens)
  })

  test.each<[string, (answer: URLSearchParams) => void]>([
    ['without iss, where the provider sends it', (answer) => answer.delete('iss')],
    ['with two of iss', (answer) => answer.append('iss', 'https://evil.test')],
    ['with another state', (answer) => answer.set('state', 'x'.repeat(43))],
    ['without state', (answer) => answer.delete('state')],
    ['with two of state', (answer) => answer.append('state', 'x')],
    ['without a code', (answer) => answer.delete('code')],
    ['with two codes', (answer) => answer.append('code', 'x')],
    ['with a token in the address', (answer) => answer.set('id_token', 'x')],
  ])('%s', async (_, change) => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    const answer = new URLSearchParams(await provider.logIn(url))
    change(answer)
    await refused(await finish(app, String(answer), cookie), 'sso_answer')
  })

  test('that is sent twice: the second reaches nobody', async () => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    const answer = await provider.logIn(url)
    const both = await Promise.all([finish(app, answer, cookie), finish(app, answer, cookie)])
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
    const asked = provider.seen.length
    await refused(await finish(app, answer, cookie), 'sso_state')
    expect(provider.seen).toHaveLength(asked)
  })

  test('with a code that was used for another login', async () => {
    provider.user = 'alice'
    const first = await begin(app)
    const answer = new URLSearchParams(await provider.logIn(first.url))
    expect((await finish(app, String(answer), first.cookie)).status).toBe(200)
    const second = await begin(app)
    answer.set('state', new URL(second.url).searchParams.get('state') ?? '')
    await refused(await finish(app, String(answer), second.cookie), 'sso_refused')
  })

  test('with the code of another login: PKCE binds it to the browser that began', async () => {
    provider.user = 'alice'
    const [victim, mine] = [await begin(app), await begin(app)]
    const stolen = new URLSearchParams(await provider.logIn(victim.url))
    stolen.set('state', new URL(mine.url).searchParams.get('state') ?? '')
    await refused(await finish(app, String(stolen), mine.cookie), 'sso_refused')
  })

  test.each<[string, (cookie: string) => string]>([
    ['without the cookie', () => ''],
    ['with a changed cookie', (cookie) => `${cookie.slice(0, -3)}AAA`],
    ['with two cookies', (cookie) => `${cookie}; ${cookie}`],
    ['with a cookie that is plain', () => 'mayfly-sso-state={}'],
  ])('%s', async (_, change) => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    await refused(await finish(app, await provider.logIn(url), change(cookie)), 'sso_state')
  })

  test('after ten minutes', async () => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    const answer = await provider.logIn(url)
    app.advance(10 * 60_000 + 1)
    await refused(await finish(app, answer, cookie), 'sso_state')
    app.advance(-10 * 60_000 - 1)
  })

  test('that says that nobody logged in', async () => {
    await refused(await attempt(app, provider, ''), 'sso_refused')
  })

  test('userinfo of another subject', async () => {
    other.documents.set('/me', (body) => ({ ...body, sub: 'mallory' }))
    await refused(await attempt(app, other, 'alice', OTHER), 'sso_answer')
    other.documents.clear()
  })

  test.each([
    ['cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['same-site', { 'sec-fetch-site': 'same-site' }],
    ['none', { 'sec-fetch-site': 'none' }],
  ])('from a page of another site (%s): it can neither begin nor finish', async (_, headers) => {
    provider.user = 'alice'
    const { url, cookie } = await begin(app)
    const parameters = await provider.logIn(url)
    const begun = await callAsPage(app, 'POST', '/v1/console/login/sso', { provider: NAME }, headers)
    const path = '/v1/console/login/sso/finish'
    const finished = await callAsPage(app, 'POST', path, { parameters }, { cookie, ...headers })
    expect([codeOf(begun), codeOf(finished)]).toEqual([
      [403, 'not_allowed'],
      [403, 'not_allowed'],
    ])
  })

  test.each<[string, unknown]>([
    ['nothing', {}],
    ['no text', { parameters: 7 }],
    ['an empty text', { parameters: '' }],
    ['more than 8 KiB', { parameters: 'x'.repeat(8_193) }],
    ['another field', { parameters: 'x', provider: NAME }],
  ])('a body with %s', async (_, body) => {
    const reply = await callAsPage(app, 'POST', '/v1/console/login/sso/finish', body)
    expect(codeOf(reply)).toEqual([400, 'invalid_request'])
  })
})

test('each reason has its denial, and nothing of what came is in it or in the log', async () => {
  await app.core.denials.flush(Number.POSITIVE_INFINITY)
  const denials = await eventually(async () => {
    const found = (await app.local.get('/v1/admin/audit?action=auth.failed&limit=500')).body as {
      details: { reason: string }
    }[]
    expect(new Set(found.map(({ details }) => details.reason))).toEqual(new Set(Object.keys(SAID)))
    return found
  })
  expect(JSON.stringify(denials) + app.logged()).not.toMatch(/eyJ|evil\.test|mfs_|s1\.1\.|code=/)
})
