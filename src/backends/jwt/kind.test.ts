import { createPublicKey, type JsonWebKey, verify as verifyWith } from 'node:crypto'
import {
  calculateJwkThumbprint,
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  jwtVerify,
} from 'jose'
import { describe, expect, it } from 'vitest'
import { newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { jwt } from './kind.ts'

type Config = Parameters<typeof jwt.open>[0]
const { host } = createTestHost('tokens')
const base: Config = { audience: 'https://a.test', algorithm: 'ES256', subject: 'agent_id' }
const signal = AbortSignal.timeout(60_000)

async function open(overrides: Partial<Config> = {}) {
  const config = (await jwt.complete?.({ ...base, ...overrides })) ?? base
  const backend = await jwt.open(config, host)
  const [key] = backend.publicKeys?.() ?? []
  const keys = createLocalJWKSet({ keys: [key as { kty: string }] })
  return { backend, config, key, verify: (token = '') => jwtVerify(token, keys, { issuer: host.issuer }) }
}

const ask = (params: { audience?: string } = {}) => ({ ...newRequest(['b:w', 'a:r']), params })

describe('a token', () => {
  it('holds the claims that RFC 9068 requires and those that are configured', async () => {
    const { backend, verify } = await open({ claims: { tier: 'gold', deep: { a: [1, null] }, 'é"': '\\' } })
    const request = ask()
    const { secret } = await backend.issue(request, signal)
    const { payload, protectedHeader } = await verify(secret)
    const iat = Math.floor(request.issuedAt / 1000)
    expect(protectedHeader).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    expect(payload).toEqual({
      tier: 'gold',
      deep: { a: [1, null] },
      'é"': '\\',
      iss: host.issuer,
      aud: 'https://a.test',
      sub: request.agent.id,
      iat,
      nbf: iat,
      exp: Math.floor(request.expiresAt / 1000),
      jti: request.credentialId,
      client_id: request.agent.id,
      scope: 'b:w a:r',
      agent_id: request.agent.id,
      agent_name: 'contract',
    })
  })

  it('escapes the name of an agent, and uses it as subject where configured', async () => {
    const { backend, verify } = await open({ subject: 'agent_name' })
    const name = '","admin":true,"x":"é\u2028'
    const { secret } = await backend.issue({ ...ask(), agent: { id: 'ag_1', name } }, signal)
    const { payload } = await verify(secret)
    expect(payload).toMatchObject({ sub: name, agent_name: name, client_id: 'ag_1' })
    expect(payload['admin']).toBeUndefined()
  })

  it('is for the configured audiences, or for the requested one of them', async () => {
    const { backend, verify } = await open({ audience: ['https://a.test', 'https://b.test'] })
    const aud = async (params = {}) =>
      (await verify((await backend.issue(ask(params), signal)).secret)).payload.aud
    expect(await aud()).toEqual(['https://a.test', 'https://b.test'])
    expect(await aud({ audience: 'https://b.test' })).toBe('https://b.test')
    for (const audience of ['https://c.test', '', '__proto__']) {
      await expect(backend.issue(ask({ audience }), signal)).rejects.toMatchObject({ fault: 'unsupported' })
    }
  })

  it('is refused if it would be too long for revoking and introspection', async () => {
    const { backend } = await open()
    const scopes = Array.from({ length: 40 }, (_, n) => `orders:${'x'.repeat(60)}-${n}`)
    const issue = (count: number) =>
      backend.issue({ ...newRequest(scopes.slice(0, count)), params: {} }, signal)
    expect((await issue(30)).secret?.length).toBeLessThan(4_096)
    await expect(issue(40)).rejects.toMatchObject({
      fault: 'unsupported',
      message: expect.stringContaining('4096 bytes'),
    })
  })

  it('carries no scope for no scopes', async () => {
    const { backend, verify } = await open()
    const { secret } = await backend.issue({ ...ask(), scopes: [] }, signal)
    expect((await verify(secret)).payload['scope']).toBe('')
  })
})

describe('the signing key', () => {
  it.each(['ES256', 'EdDSA', 'RS256'] as const)(
    'is made for %s when left out, and published without its private part',
    async (algorithm) => {
      const { backend, config, key, verify } = await open({ algorithm })
      const { secret = '' } = await backend.issue(ask(), signal)
      await verify(secret)
      expect(key).toMatchObject({
        alg: algorithm,
        use: 'sig',
        kid: await calculateJwkThumbprint(key as never),
      })
      expect(decodeProtectedHeader(secret).kid).toBe(key?.['kid'])
      for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi']) expect(key).not.toHaveProperty(member)
      expect(await jwt.complete?.(config)).toEqual(config)
    },
  )

  it('always signs ES256 in JWS form, also for a short r or s, and for many at once', async () => {
    const { backend, key } = await open()
    const publicKey = createPublicKey({ key: key as JsonWebKey, format: 'jwk' })
    for (let burst = 0; burst < 30; burst += 1) {
      const requests = Array.from({ length: 50 }, () => ask())
      const issued = await Promise.all(requests.map((request) => backend.issue(request, signal)))
      for (const [index, { secret = '' }] of issued.entries()) {
        const dot = secret.lastIndexOf('.')
        const signature = Buffer.from(secret.slice(dot + 1), 'base64url')
        const data = Buffer.from(secret.slice(0, dot))
        expect(signature).toHaveLength(64)
        expect(verifyWith('sha256', data, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)).toBe(
          true,
        )
        expect(decodeJwt(secret).jti).toBe(requests[index]?.credentialId)
      }
    }
  })

  it('may be supplied', async () => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    const { key, config } = await open({ signing_key: JSON.stringify(await exportJWK(privateKey)) })
    expect(JSON.parse(config.signing_key ?? '')).toMatchObject({ x: key?.['x'] })
  })

  it('is refused, and not repeated, when it is of another type, public, too short or not a key', async () => {
    const own = async (algorithm: string, options = {}) =>
      exportJWK((await generateKeyPair(algorithm, { extractable: true, ...options })).privateKey)
    const { d: _, ...publicOnly } = await own('ES256')
    const wrong = [
      await own('EdDSA'),
      await own('ES384'),
      await own('RS256'),
      publicOnly,
      { kty: 'EC', d: 'SECRET' },
      null,
    ]
    for (const text of [...wrong.map((jwk) => JSON.stringify(jwk)), 'SECRET', '']) {
      const error = await open({ signing_key: text }).catch((caught: unknown) => caught)
      expect(error).toMatchObject({ name: 'BackendError', fault: 'misconfigured' })
      expect(String(error)).not.toContain('SECRET')
    }
    await expect(jwt.open(base, host)).rejects.toMatchObject({ fault: 'misconfigured' })
  })
})

describe('fixed claims', () => {
  it.each('iss sub aud exp iat nbf jti scope client_id agent_id agent_name scopes __proto__'.split(' '))(
    'may not hold %s',
    async (name) => {
      const claims = JSON.parse(`{"${name}":1}`)
      await expect(open({ claims })).rejects.toMatchObject({ fault: 'misconfigured' })
      await expect(jwt.open({ ...base, claims, signing_key: '{}' }, host)).rejects.toThrow(name)
    },
  )

  it('are limited in length', async () => {
    await expect(open({ claims: { x: 'y'.repeat(2048) } })).rejects.toMatchObject({ fault: 'misconfigured' })
  })
})
