import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

/** Bearers that are forged, meant for others, or no longer valid: each gets the same 401. */
let app: TestApp
let agent: NewAgent
let good = ''
let parts: [string, string, string]
let claims: Record<string, unknown>
let header: Record<string, unknown>
const foreign = generateKeyPairSync('rsa', { modulusLength: 2048 })
const foreignJwk = foreign.publicKey.export({ format: 'jwk' })

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString())

beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders', config: { audience: 'https://mayfly.test', algorithm: 'RS256' } })
  agent = await app.newAgent({ scopes: ['orders', 'admin:agents:read'] })
  good = await app.accessToken(agent)
  parts = good.split('.') as typeof parts
  header = decode(parts[0])
  claims = decode(parts[1])
})
afterAll(() => app.close())

/** Signed by the issuer's own key, so that only the claims are wrong. */
async function ours(change: Record<string, unknown>, typ = 'at+jwt'): Promise<string> {
  const { signing } = await app.core.issuerKeys.at(await app.core.store.generation())
  const changed = Object.fromEntries(
    Object.entries({ ...claims, ...change }).filter(([, value]) => value !== undefined),
  )
  return signing.sign({ typ }, changed)
}

function theirs(change: Record<string, unknown>): string {
  const input = `${encode({ ...header, ...change })}.${encode(claims)}`
  return `${input}.${sign('sha256', Buffer.from(input), foreign.privateKey).toString('base64url')}`
}

function mac(alg: string, key: string): string {
  const input = `${encode({ ...header, alg })}.${encode(claims)}`
  return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
}

async function issuerPem(): Promise<string> {
  const [jwk] = (await app.as(undefined).get('/.well-known/jwks.json')).body.keys
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString()
}

const seconds = (ms: number) => Math.floor((app.core.store.now() + ms) / 1_000)

/** One forgery of each family. `src/keys/verify-access-token.test.ts` has all that the check of a token alone can refuse. */
const HOSTILE: [string, () => string | Promise<string>][] = [
  ['alg none', () => `${encode({ ...header, alg: 'none' })}.${parts[1]}.`],
  ['HS256 with the public key as PEM', async () => mac('HS256', await issuerPem())],
  ['another key under our key id', () => theirs({})],
  ['a key in the header', () => theirs({ jwk: foreignJwk })],
  ['the typ of an id token', () => ours({}, 'JWT')],
  ['the issuer of a backend', () => ours({ iss: 'https://mayfly.test/backends/orders' })],
  ['another audience', () => ours({ aud: 'https://other.test' })],
  ['an expiry in the past', () => ours({ exp: seconds(-60_000) })],
  ['another subject', () => ours({ sub: 'ag_00000000000000000000000000' })],
  ['the agent’s name as subject', () => ours({ sub: agent.name })],
  ['another client', () => ours({ client_id: 'agent_00000000000000000000000000' })],
  ['another agent', () => ours({ agent_id: 'ag_00000000000000000000000000' })],
  ['a changed claim', () => `${parts[0]}.${encode({ ...claims, scopes: ['admin:*'] })}.${parts[2]}`],
  ['more than 4096 bytes', () => ours({ pad: 'x'.repeat(4_096) })],
  ['the prefix alone', () => 'eyJ'],
]

describe('a JWT that is not one of ours', () => {
  test.each(HOSTILE)('with %s is refused', async (_what, make) => {
    const bearer = await make()
    const client = app.as(bearer)
    const replies = [
      await client.get('/v1/status'),
      await client.post('/v1/credentials/orders'),
      await client.get('/v1/admin/agents'),
      await client.get('/api/v1/backends'),
    ]
    for (const reply of replies) {
      expect([reply.status, reply.body.error.code]).toEqual([401, 'unauthorized'])
      expect(reply.headers.get('www-authenticate')).toBe('Bearer realm="mayfly", error="invalid_token"')
      expect(reply.text).not.toContain(bearer)
    }
    const messages = new Set(replies.map((reply) => reply.body.error.message))
    expect([...messages]).toEqual(['The token is not valid: it is unknown, expired or revoked.'])
  })

  test('is made from a token that is accepted', async () => {
    expect((await app.as(good).get('/v1/status')).body.id).toBe(agent.id)
    expect((await app.as(await ours({})).get('/v1/status')).status).toBe(200)
    expect((await app.as(await ours({ aud: ['x', 'https://mayfly.test'] })).get('/v1/status')).status).toBe(
      200,
    )
  })
})

describe('a real token of ours', () => {
  const client = () => agent.oidc

  test('that is an id token is refused', async () => {
    const form = new URLSearchParams({ grant_type: 'client_credentials', scope: 'openid', ...client() })
    const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: form })
    const { id_token: idToken } = (await reply.json()) as { id_token: string }
    expect((await app.as(idToken).get('/v1/status')).status).toBe(401)
  })

  test('that is a credential of a jwt backend is refused, even with our audience', async () => {
    const { token } = (await agent.client.post('/v1/credentials/orders')).body
    expect(decode(token.split('.')[1]).aud).toBe('https://mayfly.test')
    expect((await app.as(token).get('/v1/status')).status).toBe(401)
  })

  test('has no scopes beyond those of the agent', async () => {
    const wide = await ours({ scopes: ['*', 'admin:*'], scope: '* admin:*' })
    expect((await app.as(wide).get('/v1/admin/agents')).status).toBe(200)
    expect((await app.as(wide).get('/v1/admin/tokens')).status).toBe(403)
    expect((await app.as(wide).get('/v1/status')).body.scopes.sort()).toEqual(['admin:agents:read', 'orders'])
  })

  test('is refused outside the header Authorization', async () => {
    const path = `/v1/status?access_token=${good}`
    expect((await app.raw({ path })).status).toBe(401)
    expect((await app.raw({ path: '/v1/status', headers: { cookie: `access_token=${good}` } })).status).toBe(
      401,
    )
    expect(
      (await app.raw({ path: '/v1/status', headers: { 'x-authorization': `Bearer ${good}` } })).status,
    ).toBe(401)
  })

  test.each([
    'BEARER ',
    'Bearer  ',
    'Bearer\t',
    'JWT ',
    'Token ',
    'Basic ',
    'DPoP ',
    '',
    'Bearer "',
    'Bearer, ',
  ])('is refused behind %j', async (scheme) => {
    const reply = await app.raw({ path: '/v1/status', headers: { authorization: `${scheme}${good}` } })
    expect(reply.status).toBe(401)
  })

  test('ends at once with its agent', async () => {
    const short = await app.newAgent({ scopes: ['orders'] })
    const token = await app.accessToken(short)
    expect((await app.as(token).get('/v1/status')).status).toBe(200)
    await app.admin('DELETE', `/v1/admin/agents/${short.name}`)
    expect((await app.as(token).get('/v1/status')).status).toBe(401)
  })
})

const OPAQUE: [string, (token: string) => string][] = [
  ['upper case', (token) => token.toUpperCase()],
  ['one character changed', (token) => token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')],
  ['one character less', (token) => token.slice(0, -1)],
  ['one character more', (token) => `${token}0`],
  ['the prefix of a client secret', (token) => token.replace('ckr_', 'cks_')],
  ['no prefix', (token) => token.slice(4)],
  ['letters that are not hexadecimal', (token) => `${token.slice(0, -1)}g`],
  ['the prefix alone', () => 'ckr_'],
  ['zeros', () => `ckr_${'0'.repeat(48)}`],
  ['a comma and another', (token) => `${token},${token}`],
  ['4097 characters', () => `ckr_${'a'.repeat(4_093)}`],
]

describe('an opaque bearer', () => {
  test.each(OPAQUE)('with %s is refused', async (_what, change) => {
    const reply = await app.as(change(agent.token)).get('/v1/status')
    expect([reply.status, reply.body.error.code]).toEqual([401, 'unauthorized'])
  })

  test('that is the client secret or the client id is refused', async () => {
    for (const one of [agent.oidc.client_secret, agent.oidc.client_id, agent.id])
      expect((await app.as(one).get('/v1/status')).status).toBe(401)
  })
})

test('logs none of these tokens', () => {
  expect(app.logged()).not.toMatch(/eyJ[\w-]+\.|ck[rs]_[0-9a-f]{8}|unexpected error/)
})
