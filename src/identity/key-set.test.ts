import { describe, expect, it } from 'vitest'
import { newSigner } from '../../test/support/identity-tokens.ts'
import { chooseKey, readKeySet } from './key-set.ts'

const rsa = newSigner('RS256', 'r').jwk
const p256 = newSigner('ES256', 'p').jwk
const p384 = newSigner('ES384', 'q').jwk
const edwards = newSigner('EdDSA', 'e').jwk

const algorithmsOf = (key: unknown) =>
  readKeySet({ keys: [key] })?.flatMap(({ algorithms }) => [...algorithms])

describe('a key of an issuer', () => {
  it.each([
    ['RSA', rsa, ['RS256']],
    ['P-256', p256, ['ES256']],
    ['P-384', p384, ['ES384']],
    ['Ed25519', edwards, ['EdDSA', 'Ed25519']],
    ['Ed25519 under its new name', { ...edwards, alg: 'Ed25519' }, ['EdDSA', 'Ed25519']],
    ['without alg, use and kid', { ...rsa, alg: undefined, use: undefined, kid: undefined }, ['RS256']],
    ['of a SPIFFE trust bundle', { ...p256, use: 'jwt-svid' }, ['ES256']],
    ['with a certificate', { ...rsa, x5c: ['MIIB'], x5t: 'a' }, ['RS256']],
    ['for verifying', { ...p256, use: undefined, key_ops: ['verify'] }, ['ES256']],
  ])('signs: %s', (_, key, algorithms) => {
    expect(algorithmsOf(key)).toEqual(algorithms)
  })

  it.each<[string, unknown]>([
    ['for encryption', { ...rsa, use: 'enc' }],
    ['of X.509 SVIDs', { ...p256, use: 'x509-svid' }],
    ['for other operations', { ...rsa, use: undefined, key_ops: ['sign'] }],
    ['with operations that are no list', { ...rsa, use: undefined, key_ops: 'verify' }],
    ['for PS256', { ...rsa, alg: 'PS256' }],
    ['for RSA-OAEP', { ...rsa, alg: 'RSA-OAEP' }],
    ['for another curve than its own', { ...p256, alg: 'ES384' }],
    ['a shared secret', { kty: 'oct', k: 'AAAA', kid: 's', alg: 'HS256' }],
    ['P-521', { ...p384, crv: 'P-521' }],
    ['a curve with the name of a property', { ...p256, crv: 'constructor' }],
    ['Ed448', { ...edwards, crv: 'Ed448' }],
    ['X25519', { ...edwards, crv: 'X25519' }],
    ['RSA of 1,024 bits', { ...rsa, n: Buffer.alloc(128, 255).toString('base64url') }],
    ['RSA of 2,048 bits with leading zeros', { ...rsa, n: leadingZeros(128, 256) }],
    ['RSA so long that each check is slow', { ...rsa, n: Buffer.alloc(1_025, 255).toString('base64url') }],
    ['RSA with a long exponent', { ...rsa, e: Buffer.alloc(5, 255).toString('base64url') }],
    ['RSA with the exponent 0', { ...rsa, e: 'AAAA' }],
    ['a modulus that is no base64url', { ...rsa, n: `${rsa.n}=` }],
    ['a modulus that is no text', { ...rsa, n: 5 }],
    ['a short coordinate', { ...p256, x: Buffer.alloc(31, 1).toString('base64url') }],
    ['a kid that is no text', { ...rsa, kid: 1 }],
    ['no object', 'key'],
    ['null', null],
  ])('is left out: %s', (_, key) => {
    expect(readKeySet({ keys: [key, p384] })).toHaveLength(1)
  })

  it('keeps nothing private', () => {
    const [key] = readKeySet({ keys: [{ ...p256, d: 'secret' }] }) ?? []
    expect(key?.jwk).toEqual({ kty: 'EC', crv: 'P-256', x: p256.x, y: p256.y })
  })

  it.each<[string, unknown]>([
    ['a text', 'keys'],
    ['a list', [rsa]],
    ['no keys', {}],
    ['keys that are no list', { keys: rsa }],
    ['null', null],
    ['nothing', undefined],
  ])('is in no set: %s', (_, document) => {
    expect(readKeySet(document)).toBeUndefined()
  })
})

describe('the key of a token', () => {
  const keys = readKeySet({ keys: [rsa, p256, { ...p384, kid: 'p' }] }) ?? []

  it('is the one that it names, of its algorithm', () => {
    expect(chooseKey(keys, { alg: 'ES256', kid: 'p' })?.jwk.crv).toBe('P-256')
    expect(chooseKey(keys, { alg: 'ES384', kid: 'p' })?.jwk.crv).toBe('P-384')
    expect(chooseKey(keys, { alg: 'RS256', kid: 'p' })).toBeUndefined()
    expect(chooseKey(keys, { alg: 'RS256', kid: 'R' })).toBeUndefined()
  })

  it('is the only one of its algorithm, if it names none', () => {
    expect(chooseKey(keys, { alg: 'RS256', kid: undefined })?.kid).toBe('r')
    const two = readKeySet({ keys: [rsa, newSigner('RS256').jwk] }) ?? []
    expect(chooseKey(two, { alg: 'RS256', kid: undefined })).toBeUndefined()
    expect(chooseKey(keys, { alg: 'EdDSA', kid: undefined })).toBeUndefined()
  })
})

function leadingZeros(bytes: number, length: number): string {
  return Buffer.concat([Buffer.alloc(length - bytes), Buffer.alloc(bytes, 255)]).toString('base64url')
}
