import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import { afterEach, describe, expect, it, test } from 'vitest'
import { type OAuthApp, startOAuthApp } from '../../../../test/support/oauth-app.ts'
import { JWT_BEARER, oauthCalls } from '../../../../test/support/oauth-calls.ts'

let app: OAuthApp | undefined
afterEach(() => app?.close())

/** Logs in by an enrolled key with assertions for these audiences; returns a status for each. */
async function logIn(argv: Record<string, unknown>, audiencesOf: (issuer: string) => string[]) {
  app = await startOAuthApp(argv)
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const publicJwk = publicKey.export({ format: 'jwk' }) as Record<string, unknown>
  const { agent } = await app.createAgent({ name: 'keyed', scopes: [], publicJwk })
  const statuses: number[] = []
  for (const aud of audiencesOf(app.issuer)) {
    const reply = await logInFor(app, agent.clientId, privateKey, aud)
    statuses.push(reply.status)
    if (reply.status === 200) expect(decodeJwt(String(reply.body['access_token'])).iss).toBe(app.issuer)
  }
  return statuses
}

let count = 0
async function logInFor(one: OAuthApp, id: string, key: KeyObject, aud: string | string[]) {
  count += 1
  const now = Math.floor(one.core.store.now() / 1000)
  const claims = { iss: id, sub: id, aud, jti: `i${count}`, iat: now, exp: now + 60 }
  const assertion = await new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA' }).sign(key)
  return oauthCalls(one).post('/oauth/token', {
    grant_type: 'client_credentials',
    client_assertion_type: JWT_BEARER,
    client_assertion: assertion,
  })
}

describe('an assertion by an enrolled key', () => {
  it('is accepted for a previous issuer while the configuration lists it', async () => {
    const old = 'https://old.example.com'
    const audiences = () => [old, `${old}/oauth/token`, `${old}/`, 'https://other.example.com']
    expect(await logIn({ previousIssuer: [old] }, audiences)).toEqual([200, 200, 401, 401])
    await app?.close()
    expect(await logIn({}, audiences)).toEqual([401, 401, 401, 401])
  })

  it('is accepted for each name of the loopback with the port of the issuer', async () => {
    const at = (host: string) => (issuer: string) => issuer.replace('127.0.0.1', host)
    const port = (issuer: string) => Number(new URL(issuer).port)
    expect(
      await logIn({}, (issuer) => [
        at('localhost')(issuer),
        `${at('localhost')(issuer)}/oauth/token`,
        at('[::1]')(issuer),
        at('127.0.0.2')(issuer),
        at('localhost.evil.example')(issuer),
        `http://localhost:${port(issuer) + 1}`,
        `https://localhost:${port(issuer)}`,
      ]),
    ).toEqual([200, 200, 200, 401, 401, 401, 401])
  })
})

test('an access token of a previous issuer is refused, so that its holder logs in again', async () => {
  app = await startOAuthApp({ previousIssuer: ['https://old.example.com'] })
  const { signing } = await app.core.issuerKeys.at(await app.core.store.generation())
  const made = await app.createAgent({ name: 'ada', scopes: [] })
  const calls = oauthCalls(app)
  const now = decodeJwt(await calls.accessToken(made))
  const resigned = (iss: unknown) =>
    signing.sign({ typ: 'at+jwt' }, { ...now, iss, aud: [iss], jti: `r${String(iss)}` })
  expect(await calls.statusWith(await resigned(app.issuer))).toBe(200)
  expect(await calls.statusWith(await resigned('https://old.example.com'))).toBe(401)
})
