import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'
import { describe, expect, test } from 'vitest'
import { isEd25519Point } from './curve25519-point.ts'
import { checkEncryptionJwk, checkPublicJwk } from './public-jwk.ts'

const jwkOf = (pair: { publicKey: KeyObject }) =>
  pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>
const ed = generateKeyPairSync('ed25519')
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const x25519 = generateKeyPairSync('x25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })

/** 32 bytes, little-endian, as base64url: the `x` of an OKP key. */
const encodeX = (hex: string) => Buffer.from(hex.padEnd(64, '0'), 'hex').toString('base64url')

describe('checkPublicJwk', () => {
  test.each([
    ['Ed25519', ed, ['kty', 'crv', 'x']],
    ['P-256', ec, ['kty', 'crv', 'x', 'y']],
  ] as const)('takes %s and keeps the required members only', async (_name, pair, members) => {
    const jwk = jwkOf(pair)
    const alg = pair === ed ? 'EdDSA' : 'ES256'
    const checked = checkPublicJwk({ ...jwk, kid: 'mine', alg, use: 'sig' })
    expect(checked?.thumbprint).toBe(await calculateJwkThumbprint(jwk as JWK))
    expect(checked?.jwk).toEqual(jwk)
    expect(Object.keys(checked?.jwk ?? {})).toEqual(members)
  })

  test('takes every honest Ed25519 key', () => {
    for (let count = 0; count < 50; count += 1) {
      expect(checkPublicJwk(jwkOf(generateKeyPairSync('ed25519')))).toBeDefined()
    }
  })

  const edJwk = jwkOf(ed)
  const ecJwk = jwkOf(ec)
  const x = String(edJwk['x'])
  test.each([
    ['null', null],
    ['text', JSON.stringify(edJwk)],
    ['an array', [edJwk]],
    ['an empty object', {}],
    ['a private Ed25519 key', ed.privateKey.export({ format: 'jwk' })],
    ['a private P-256 key', ec.privateKey.export({ format: 'jwk' })],
    ['d alone', { ...edJwk, d: '' }],
    ['RSA', jwkOf(rsa)],
    ['oct', { kty: 'oct', k: 'AAAA' }],
    ['X25519', jwkOf(x25519)],
    ['Ed448', jwkOf(generateKeyPairSync('ed448'))],
    ['P-384', jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }))],
    ['secp256k1', jwkOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }))],
    ['an extra member', { ...edJwk, x5c: [] }],
    ['key_ops', { ...edJwk, key_ops: ['verify'] }],
    ['a jku', { ...edJwk, jku: 'https://evil.example' }],
    ['use enc', { ...edJwk, use: 'enc' }],
    ['the algorithm of another curve', { ...edJwk, alg: 'ES256' }],
    ['alg none', { ...edJwk, alg: 'none' }],
    ['alg as an array', { ...edJwk, alg: ['EdDSA'] }],
    ['kid as a number', { ...edJwk, kid: 1 }],
    ['a long kid', { ...edJwk, kid: 'k'.repeat(129) }],
    ['y on an OKP key', { ...edJwk, y: ecJwk['y'] }],
    ['no y on a P-256 key', { kty: 'EC', crv: 'P-256', x: ecJwk['x'] }],
    ['kty EC with crv Ed25519', { ...edJwk, kty: 'EC' }],
    ['padded x', { ...edJwk, x: `${x}=` }],
    ['x with a newline', { ...edJwk, x: `${x}\n` }],
    ['x with stray low bits', { ...edJwk, x: `${'A'.repeat(42)}B` }],
    ['a short x', { ...edJwk, x: x.slice(0, 42) }],
    ['a long x', { ...edJwk, x: `${x}AAAA` }],
    ['x as a number', { ...edJwk, x: 1 }],
    ['a P-256 point off the curve', { ...ecJwk, y: ecJwk['x'] }],
    ['the P-256 point 0, 0', { ...ecJwk, x: encodeX(''), y: encodeX('') }],
    ['a P-256 x beyond the prime', { ...ecJwk, x: encodeX('f'.repeat(64)) }],
    ['the Ed25519 identity', { ...edJwk, x: encodeX('01') }],
    ['Ed25519 of order 4', { ...edJwk, x: encodeX('') }],
    ['Ed25519 of order 2', { ...edJwk, x: encodeX(`ec${'f'.repeat(60)}7f`) }],
    ['Ed25519 y beyond the prime', { ...edJwk, x: encodeX(`ee${'f'.repeat(60)}7f`) }],
    ['Ed25519 off the curve', { ...edJwk, x: encodeX('02') }],
  ])('refuses %s', (_name, jwk) => {
    expect(checkPublicJwk(jwk)).toBeUndefined()
  })

  test('refuses both Ed25519 points of order 8, with either sign', () => {
    for (const y of [
      '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
      'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    ]) {
      const bytes = Buffer.from(y, 'hex')
      expect(isEd25519Point(bytes)).toBe(false)
      bytes.writeUInt8(bytes.readUInt8(31) | 0x80, 31)
      expect(isEd25519Point(bytes)).toBe(false)
    }
    // The base point of RFC 8032 §5.1 is fine.
    expect(isEd25519Point(Buffer.from(`58${'66'.repeat(31)}`, 'hex'))).toBe(true)
  })
})

describe('checkEncryptionJwk', () => {
  const jwk = jwkOf(x25519)
  test('takes X25519 and P-256', () => {
    expect(checkEncryptionJwk({ ...jwk, use: 'enc', alg: 'ECDH-ES', kid: 'e' })).toEqual(jwk)
    expect(checkEncryptionJwk(jwkOf(ec))).toEqual(jwkOf(ec))
  })

  test.each([
    ['Ed25519', jwkOf(ed)],
    ['a private key', x25519.privateKey.export({ format: 'jwk' })],
    ['use sig', { ...jwk, use: 'sig' }],
    ['another alg', { ...jwk, alg: 'RSA-OAEP' }],
    ['X448', jwkOf(generateKeyPairSync('x448'))],
    ['the zero point', { ...jwk, x: encodeX('') }],
    ['the point 1', { ...jwk, x: encodeX('01') }],
    ['order 8', { ...jwk, x: encodeX('e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800') }],
    ['p - 1', { ...jwk, x: encodeX(`ec${'f'.repeat(60)}7f`) }],
    ['undefined', undefined],
  ])('refuses %s', (_name, key) => {
    expect(checkEncryptionJwk(key)).toBeUndefined()
  })
})
