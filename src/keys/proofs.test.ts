import {
  createHash,
  createHmac,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from 'node:crypto'
import { compactDecrypt } from 'jose'
import * as oauth from 'oauth4webapi'
import { describe, expect, test, vi } from 'vitest'
import { isEd25519Point } from './curve25519-point.ts'
import type { PublicJwk } from './jwt-keys.ts'
import { sealAnswer, verifyAssertion, verifyEnrollmentProof } from './proofs.ts'
import { checkEncryptionJwk } from './public-jwk.ts'

vi.mock('./curve25519-point.ts', { spy: true })

const ISSUER = 'https://mayfly.example.com'
const ENDPOINT = `${ISSUER}/oauth/token`
const NOW = Date.UTC(2026, 10, 1, 12)
const SECONDS = NOW / 1000

type Pair = { privateKey: KeyObject; publicKey: KeyObject }
const jwkOf = (pair: Pair) => pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>
const ed = generateKeyPairSync('ed25519')
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const x25519 = generateKeyPairSync('x25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

const b64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function forge(head: unknown, body: unknown, key: KeyObject = ed.privateKey): string {
  const input = `${b64(head)}.${b64(body)}`
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  return `${input}.${sign(hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** 32 bytes, little-endian, as base64url: the `x` of an OKP key. */
const encodeX = (hex: string) => Buffer.from(hex.padEnd(64, '0'), 'hex').toString('base64url')

/** What both kinds of proof refuse, whatever they say. */
function hostileForms(header: Record<string, unknown>, claims: Record<string, unknown>): [string, unknown][] {
  const good = forge(header, claims)
  const [head = '', body = '', signature = ''] = good.split('.')
  const input = `${b64({ ...header, alg: 'HS256' })}.${body}`
  const mac = createHmac('sha256', JSON.stringify(jwkOf(ed)))
    .update(input)
    .digest('base64url')
  const attacker = generateKeyPairSync('ed25519')
  return [
    ['alg none', `${b64({ ...header, alg: 'none' })}.${body}.`],
    ['alg none with a signature', forge({ ...header, alg: 'none' }, claims)],
    ['HS256 with the public key as secret', `${input}.${mac}`],
    ['ES256 in name', forge({ ...header, alg: 'ES256' }, claims)],
    ['a P-256 key instead', forge({ ...header, alg: 'ES256' }, claims, ec.privateKey)],
    ['an RSA key instead', forge({ ...header, alg: 'RS256' }, claims, rsa.privateKey)],
    ['another key', forge(header, claims, attacker.privateKey)],
    ['another key in jwk', forge({ ...header, jwk: jwkOf(attacker) }, claims, attacker.privateKey)],
    ['jku', forge({ ...header, jku: 'https://evil.example' }, claims)],
    ['crit', forge({ ...header, crit: ['b64'], b64: true }, claims)],
    ['typ at+jwt', forge({ ...header, typ: 'at+jwt' }, claims)],
    ['typ as a number', forge({ ...header, typ: 1 }, claims)],
    ['a padded signature', `${good}==`],
    ['a trailing newline', `${good}\n`],
    ['4 parts', `${good}.AA`],
    ['no signature', `${head}.${body}.`],
    ['a signature of zeros', `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`],
    ['a cut signature', `${head}.${body}.${signature.slice(0, 40)}`],
    ['5 KiB', forge(header, { ...claims, pad: 'x'.repeat(5000) })],
    ['unicode', `${good.slice(0, -1)}é`],
    ['a payload that is an array', forge(header, [claims])],
    ['nothing', ''],
    ['undefined', undefined],
    ['no jti', forge(header, { ...claims, jti: undefined })],
    ['jti as a number', forge(header, { ...claims, jti: 12345678 })],
    ['a jti of 129 characters', forge(header, { ...claims, jti: 'j'.repeat(129) })],
    ['a jti with NUL', forge(header, { ...claims, jti: 'jjjjjjjj\0' })],
    ['a jti with a newline', forge(header, { ...claims, jti: 'jjjjjjjj\n' })],
    ['no aud', forge(header, { ...claims, aud: undefined })],
    ['another aud', forge(header, { ...claims, aud: 'https://other.example' })],
    ['aud with a slash', forge(header, { ...claims, aud: `${ISSUER}/` })],
    ['aud as an object', forge(header, { ...claims, aud: { 0: ISSUER } })],
    ['iat 1e300', forge(header, { ...claims, iat: 1e300 })],
    ['iat as text', forge(header, { ...claims, iat: String(SECONDS) })],
    ['iat null', forge(header, { ...claims, iat: null })],
  ]
}

describe('verifyAssertion', () => {
  const header = { alg: 'EdDSA' }
  const claims = {
    iss: 'agent_1',
    sub: 'agent_1',
    aud: ENDPOINT,
    exp: SECONDS + 60,
    iat: SECONDS,
    jti: 'j-1',
  }
  const expected = { clientId: 'agent_1', audiences: [ISSUER, ENDPOINT], now: NOW }
  const verify = (token: unknown, jwk: PublicJwk = jwkOf(ed), now = NOW) =>
    verifyAssertion(token as string, jwk, { ...expected, now })

  test.each([
    ['the token endpoint', ENDPOINT],
    ['the issuer', ISSUER],
  ])('takes one for %s', async (_name, aud) => {
    expect(await verify(forge(header, { ...claims, aud }))).toEqual({
      jti: 'j-1',
      expiresAt: NOW + 60_000,
      rememberUntil: NOW + 65_000,
    })
  })

  test('takes ES256, the Ed25519 name of RFC 9864, a kid, and the usual types', async () => {
    expect(await verify(forge({ alg: 'ES256' }, claims, ec.privateKey), jwkOf(ec))).toBeDefined()
    expect(await verify(forge({ alg: 'Ed25519', kid: 'k' }, claims))).toBeDefined()
    expect(await verify(forge({ ...header, typ: 'JWT' }, claims))).toBeDefined()
    expect(await verify(forge({ ...header, typ: 'client-authentication+jwt' }, claims))).toBeDefined()
  })

  test.each(['Ed25519', 'ES256'])('takes what oauth4webapi makes with %s', async (alg) => {
    const pair = await oauth.generateKeyPair(alg, { extractable: true })
    const jwk = await crypto.subtle.exportKey('jwk', pair.publicKey)
    const body = new URLSearchParams()
    const client = { client_id: 'agent_1' }
    await oauth.PrivateKeyJwt(pair.privateKey)({ issuer: ISSUER }, client, body, new Headers())
    const { kty, crv, x, y } = jwk
    const plain = y === undefined ? { kty, crv, x } : { kty, crv, x, y }
    expect(await verify(body.get('client_assertion'), plain, Date.now())).toBeDefined()
  })

  test('checks the point of the enrolled key neither for a good nor for a bad assertion', async () => {
    vi.mocked(isEd25519Point).mockClear()
    const good = forge(header, claims)
    expect(await verify(good)).toBeDefined()
    expect(await verify(`${good.slice(0, -4)}AAAA`)).toBeUndefined()
    expect(isEd25519Point).not.toHaveBeenCalled()
  })

  test('keeps the bounds of time to the ms', async () => {
    const token = forge(header, claims)
    expect(await verify(token, undefined, NOW + 64_999)).toBeDefined()
    expect(await verify(token, undefined, NOW + 65_000)).toBeUndefined()
    expect(await verify(token, undefined, NOW - 5_000)).toBeDefined()
    expect(await verify(token, undefined, NOW - 5_001)).toBeUndefined()
    const far = (seconds: number) => forge(header, { ...claims, exp: SECONDS + seconds })
    expect(await verify(far(305))).toBeDefined()
    expect(await verify(far(306))).toBeUndefined()
  })

  test.each([
    ...hostileForms(header, claims),
    ['no exp', forge(header, { ...claims, exp: undefined })],
    ['exp 1e300', forge(header, { ...claims, exp: 1e300 })],
    ['exp as text', forge(header, { ...claims, exp: '1' })],
    ['exp with a fraction', forge(header, { ...claims, exp: SECONDS + 60.5 })],
    ['exp an hour ahead', forge(header, { ...claims, exp: SECONDS + 3600 })],
    ['exp in the past', forge(header, { ...claims, exp: SECONDS - 10 })],
    ['iat in the future', forge(header, { ...claims, iat: SECONDS + 6 })],
    ['nbf in the future', forge(header, { ...claims, nbf: SECONDS + 6 })],
    ['another iss', forge(header, { ...claims, iss: 'agent_2' })],
    ['another sub', forge(header, { ...claims, sub: 'agent_2' })],
    ['no iss', forge(header, { ...claims, iss: undefined })],
    ['no sub', forge(header, { ...claims, sub: undefined })],
    ['iss in an array', forge(header, { ...claims, iss: ['agent_1'] })],
    ['several audiences', forge(header, { ...claims, aud: ['x', ISSUER] })],
    ['aud in an array', forge(header, { ...claims, aud: [ISSUER] })],
    ['an empty jti', forge(header, { ...claims, jti: '' })],
    ['the type of an enrollment proof', forge({ ...header, typ: 'enrollment-proof+jwt' }, claims)],
  ] as [string, unknown][])('refuses %s', async (_name, token) => {
    expect(await verify(token)).toBeUndefined()
  })

  test.each([{}, { kty: 'oct', k: 'AAAA' }, { ...jwkOf(ed), x: 'AA' }])(
    'refuses the stored key %j',
    async (jwk) => {
      expect(await verifyAssertion(forge(header, claims), jwk, expected)).toBeUndefined()
    },
  )
})

describe('verifyEnrollmentProof', () => {
  const header = { alg: 'EdDSA' }
  const claims = { aud: ISSUER, enr: 'enr_1', iat: SECONDS, jti: 'jjjjjjjj', enc: jwkOf(x25519) }
  const expected = { audiences: [ISSUER], enrollmentId: 'enr_1', now: NOW }
  const verify = (token: unknown, now = NOW, jwk: PublicJwk = jwkOf(ed)) =>
    verifyEnrollmentProof(token as string, jwk, { ...expected, now })

  test('takes Ed25519 and ES256, with X25519 and P-256 for the answer', async () => {
    expect(await verify(forge(header, claims))).toEqual({
      enrollmentId: 'enr_1',
      jti: 'jjjjjjjj',
      issuedAt: NOW,
      rememberUntil: NOW + 60_001,
      enc: jwkOf(x25519),
    })
    const second = forge(
      { alg: 'ES256', typ: 'enrollment-proof+jwt' },
      { ...claims, enc: jwkOf(ec) },
      ec.privateKey,
    )
    expect((await verify(second, NOW, jwkOf(ec)))?.enc).toEqual(jwkOf(ec))
  })

  test('is good for 60 s either way', async () => {
    const token = forge(header, claims)
    expect(await verify(token, NOW + 60_000)).toBeDefined()
    expect(await verify(token, NOW + 60_001)).toBeUndefined()
    expect(await verify(token, NOW - 60_000)).toBeDefined()
    expect(await verify(token, NOW - 60_001)).toBeUndefined()
  })

  test.each([
    ...hostileForms(header, claims),
    ['aud in an array', forge(header, { ...claims, aud: [ISSUER] })],
    ['no iat', forge(header, { ...claims, iat: undefined })],
    ['another enr', forge(header, { ...claims, enr: 'enr_2' })],
    ['no enr', forge(header, { ...claims, enr: undefined })],
    ['a jti of 7 characters', forge(header, { ...claims, jti: 'jjjjjjj' })],
    ['no enc', forge(header, { ...claims, enc: undefined })],
    [
      'enc with its private part',
      forge(header, { ...claims, enc: x25519.privateKey.export({ format: 'jwk' }) }),
    ],
    ['enc of Ed25519', forge(header, { ...claims, enc: jwkOf(ed) })],
    ['enc of RSA', forge(header, { ...claims, enc: jwkOf(rsa) })],
    ['enc off the curve', forge(header, { ...claims, enc: { ...jwkOf(ec), y: jwkOf(ec)['x'] } })],
    ['enc of small order', forge(header, { ...claims, enc: { ...jwkOf(x25519), x: encodeX('') } })],
    ['enc as text', forge(header, { ...claims, enc: JSON.stringify(jwkOf(x25519)) })],
    ['exp in the past', forge(header, { ...claims, exp: SECONDS - 10 })],
    ['the type of a client assertion', forge({ ...header, typ: 'client-authentication+jwt' }, claims)],
  ] as [string, unknown][])('refuses %s', async (_name, token) => {
    expect(await verify(token)).toBeUndefined()
  })

  test('an assertion is no proof, and a proof no assertion', async () => {
    const assertion = { iss: 'a', sub: 'a', aud: ISSUER, exp: SECONDS + 60, iat: SECONDS, jti: 'jjjjjjjj' }
    expect(await verify(forge(header, assertion))).toBeUndefined()
    const asked = { clientId: 'a', audiences: [ISSUER], now: NOW }
    expect(await verifyAssertion(forge(header, claims), jwkOf(ed), asked)).toBeUndefined()
  })
})

describe('sealAnswer', () => {
  test.each([
    ['X25519', x25519],
    ['P-256', ec],
  ] as const)('to %s opens with the private key and no other', async (_name, pair) => {
    const enc = checkEncryptionJwk(jwkOf(pair))
    if (enc === undefined) throw new Error('not a key')
    const answer = { token: 'ckr_x', scopes: ['a'], note: 'ü' }
    const sealed = await sealAnswer(answer, enc)
    expect(sealed.split('.')).toHaveLength(5)
    expect(sealed).not.toContain(createHash('sha256').update('ckr_x').digest('base64url'))
    const opened = await compactDecrypt(
      sealed,
      createPrivateKey(pair.privateKey.export({ type: 'pkcs8', format: 'pem' })),
    )
    expect(opened.protectedHeader).toMatchObject({ alg: 'ECDH-ES', enc: 'A256GCM' })
    expect(JSON.parse(Buffer.from(opened.plaintext).toString())).toEqual(answer)
    const stranger =
      pair === ec ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('x25519')
    await expect(compactDecrypt(sealed, stranger.privateKey)).rejects.toThrow()
    expect(await sealAnswer(answer, enc)).not.toBe(sealed)
  })

  test('refuses a key that is none', async () => {
    await expect(sealAnswer({}, { kty: 'OKP', crv: 'X25519', x: encodeX('') })).rejects.toThrow()
  })
})
