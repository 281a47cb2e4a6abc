import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto'
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

function theirs(change: Record<string, unknown>, of: Record<string, unknown> = claims): string {
  const input = `${encode({ ...header, ...change })}.${encode(of)}`
  return `${input}.${sign('sha256', Buffer.from(input), foreign.privateKey).toString('base64url')}`
}

function mac(alg: string, key: string | Buffer, change: Record<string, unknown> = {}): string {
  const input = `${encode({ ...header, alg, ...change })}.${encode(claims)}`
  return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
}

async function issuerJwk(): Promise<JsonWebKey> {
  return (await app.as(undefined).get('/.well-known/jwks.json')).body.keys[0]
}

async function issuerPem(): Promise<string> {
  const key = createPublicKey({ key: await issuerJwk(), format: 'jwk' })
  return key.export({ type: 'spki', format: 'pem' }).toString()
}

const seconds = (ms: number) => Math.floor((app.core.store.now() + ms) / 1_000)

const HOSTILE: [string, () => string | Promise<string>][] = [
  ['alg none, without a signature', () => `${encode({ ...header, alg: 'none' })}.${parts[1]}.`],
  ['alg none, with the old signature', () => `${encode({ ...header, alg: 'none' })}.${parts[1]}.${parts[2]}`],
  ['alg NONE', () => `${encode({ ...header, alg: 'NONE' })}.${parts[1]}.`],
  ['HS256 with the public key as PEM', async () => mac('HS256', await issuerPem())],
  [
    'HS256 with the modulus',
    async () => mac('HS256', Buffer.from(String((await issuerJwk()).n), 'base64url')),
  ],
  ['HS256 with nothing', () => mac('HS256', '')],
  ['HS256 with the key id', () => mac('HS256', String(header['kid']))],
  ['RS384 in the header', () => theirs({ alg: 'RS384' })],
  ['PS256 in the header', () => theirs({ alg: 'PS256' })],
  ['ES256 in the header', () => theirs({ alg: 'ES256' })],
  ['another key under our key id', () => theirs({})],
  ['another key with its own key id', () => theirs({ kid: 'theirs' })],
  ['another key without a key id', () => theirs({ kid: undefined })],
  ['a key in the header', () => theirs({ jwk: foreignJwk })],
  ['the address of a key', () => theirs({ jku: 'https://evil.test/jwks.json' })],
  ['a certificate in the header', () => theirs({ x5c: ['AAAA'] })],
  ['the address of a certificate', () => theirs({ x5u: 'https://evil.test/x.pem' })],
  ['a key id that is a path', () => theirs({ kid: '../../../../dev/null' })],
  ['a key id that is SQL', () => theirs({ kid: "' OR 1=1 --" })],
  ['a key id of an object’s', () => theirs({ kid: '__proto__' })],
  ['a critical extension', () => theirs({ crit: ['b64'], b64: false })],
  ['compression', () => theirs({ zip: 'DEF' })],
  ['the typ of an id token', () => ours({}, 'JWT')],
  ['no typ', () => ours({}, '')],
  ['the typ of an event', () => ours({}, 'secevent+jwt')],
  ['another issuer', () => ours({ iss: 'https://evil.test' })],
  ['the issuer with a slash', () => ours({ iss: 'https://mayfly.test/' })],
  ['the issuer of a backend', () => ours({ iss: 'https://mayfly.test/backends/orders' })],
  ['no issuer', () => ours({ iss: undefined })],
  ['another audience', () => ours({ aud: 'https://other.test' })],
  ['no audience', () => ours({ aud: undefined })],
  ['an empty list of audiences', () => ours({ aud: [] })],
  ['an audience that is ours in part', () => ours({ aud: 'https://mayfly.test.evil.test' })],
  ['an expiry in the past', () => ours({ exp: seconds(-60_000) })],
  ['no expiry', () => ours({ exp: undefined })],
  ['an expiry as text', () => ours({ exp: '9999999999' })],
  ['an expiry of null', () => ours({ exp: null })],
  ['an endless expiry', () => ours({ exp: 1e308 })],
  ['a start in the future', () => ours({ nbf: seconds(60_000) })],
  ['an issue in the future', () => ours({ iat: seconds(60_000) })],
  ['no time of issue', () => ours({ iat: undefined })],
  ['no jti', () => ours({ jti: undefined })],
  ['no subject', () => ours({ sub: undefined })],
  ['another subject', () => ours({ sub: 'ag_00000000000000000000000000' })],
  ['the agent’s name as subject', () => ours({ sub: agent.name })],
  ['another client', () => ours({ client_id: 'agent_00000000000000000000000000' })],
  ['another agent', () => ours({ agent_id: 'ag_00000000000000000000000000' })],
  ['an agent that is an object', () => ours({ agent_id: { $ne: null } })],
  ['scopes as text', () => ours({ scopes: 'admin:*' })],
  ['scopes with a number', () => ours({ scopes: ['orders', 1] })],
  ['no scopes', () => ours({ scopes: undefined })],
  ['a changed claim', () => `${parts[0]}.${encode({ ...claims, scopes: ['admin:*'] })}.${parts[2]}`],
  ['a changed header', () => `${encode({ ...header, x: 1 })}.${parts[1]}.${parts[2]}`],
  ['a shortened signature', () => good.slice(0, -4)],
  ['a lengthened signature', () => `${good}AAAA`],
  ['no signature', () => `${parts[0]}.${parts[1]}.`],
  ['two parts', () => `${parts[0]}.${parts[1]}`],
  ['four parts', () => `${good}.${parts[2]}`],
  ['five parts, as if encrypted', () => `${good}.a.b`],
  ['padding', () => `${parts[0]}=.${parts[1]}.${parts[2]}`],
  [
    'base64 instead of base64url',
    () => `${parts[0]}.${parts[1]}.${Buffer.from(parts[2], 'base64url').toString('base64')}`,
  ],
  [
    'a header that is a list',
    () => `${Buffer.from('["eyJ"]').toString('base64url')}.${parts[1]}.${parts[2]}`,
  ],
  [
    'a header with a key twice',
    () => `${Buffer.from('{"alg":"none","alg":"RS256"}').toString('base64url')}.${parts[1]}.${parts[2]}`,
  ],
  ['claims that are null', () => theirs({}, null as never)],
  ['claims that are no JSON', () => `${parts[0]}.${Buffer.from('nope').toString('base64url')}.${parts[2]}`],
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
  expect(app.logged()).not.toMatch(/eyJ[A-Za-z0-9_-]{10}|ck[rs]_[0-9a-f]{8}|unforeseen error/)
})
