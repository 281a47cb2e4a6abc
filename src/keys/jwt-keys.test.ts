import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  X509Certificate,
} from 'node:crypto'
import { calculateJwkThumbprint, compactVerify, importJWK, type JWK } from 'jose'
import { describe, expect, test } from 'vitest'
import { generateIssuerKey, loadSigningKey } from './jwt-keys.ts'
import { thumbprint } from './thumbprint.ts'

const ISSUER = 'https://mayfly.example.com'
const NOW = Date.UTC(2026, 10, 1, 12)

const issuerKey = await generateIssuerKey(ISSUER, NOW)
const key = loadSigningKey(issuerKey.privateKey, issuerKey.publicJwk)
const other = await generateIssuerKey(ISSUER, NOW)
const spki = createPublicKey(issuerKey.privateKey).export({ type: 'spki', format: 'pem' }).toString()

describe('generateIssuerKey', () => {
  test('makes a 2048-bit RSA key whose kid is its thumbprint and whose JWK holds nothing private', async () => {
    const { publicJwk, kid } = issuerKey
    expect(Object.keys(publicJwk).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use', 'x5c'])
    expect(publicJwk).toMatchObject({ kty: 'RSA', use: 'sig', alg: 'RS256', kid, e: 'AQAB' })
    expect(kid).toBe(await calculateJwkThumbprint(publicJwk as JWK))
    expect(createPrivateKey(issuerKey.privateKey).asymmetricKeyDetails?.modulusLength).toBe(2048)
    expect(issuerKey.privateKey).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
  })

  test('certifies it: same key, the issuer as CN, self-signed, valid for long', () => {
    const [der] = issuerKey.publicJwk['x5c'] as string[]
    const certificate = new X509Certificate(Buffer.from(der ?? '', 'base64'))
    expect(certificate.subject).toBe('CN=mayfly.example.com')
    expect(certificate.issuer).toBe(certificate.subject)
    expect(certificate.publicKey.export({ type: 'spki', format: 'pem' })).toBe(spki)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
    expect(certificate.ca).toBe(false)
    expect(Date.parse(certificate.validFrom)).toBe(NOW)
    expect(Date.parse(certificate.validTo) - NOW).toBeGreaterThan(20 * 365 * 86_400_000)
    expect(certificate.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/)
  })

  test.each([
    ['https://localhost:8443/a', 'CN=localhost'],
    ['http://[::1]:80', 'CN=[::1]'],
    [`https://${'a'.repeat(60)}.example.com`, `CN=${'a'.repeat(60)}.exa`],
  ])('takes %s', async (issuer, subject) => {
    const made = await generateIssuerKey(issuer, NOW)
    const [der] = made.publicJwk['x5c'] as string[]
    expect(new X509Certificate(Buffer.from(der ?? '', 'base64')).subject).toBe(subject)
  })

  test('refuses an issuer that is no URL', async () => {
    await expect(generateIssuerKey('mayfly', NOW)).rejects.toThrow(TypeError)
  })
})

describe('loadSigningKey', () => {
  const curve = (type: 'ed25519' | 'P-256') => {
    const pair =
      type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    return {
      pem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      jwk: pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>,
    }
  }

  test.each([
    ['RS256', { pem: issuerKey.privateKey, jwk: issuerKey.publicJwk }],
    ['ES256', curve('P-256')],
    ['EdDSA', curve('ed25519')],
  ] as const)('signs %s as jose reads it', async (alg, { pem, jwk }) => {
    const loaded = loadSigningKey(pem, jwk)
    expect(loaded.alg).toBe(alg)
    expect(loaded.kid).toBe(await calculateJwkThumbprint(jwk as JWK))
    for (const head of [{ typ: 'JWT' }, { typ: 'JWT' }, { typ: 'at+jwt' }, {}, { typ: 'JWT', cty: 'x' }]) {
      const token = await loaded.sign(head, { a: 'ü' })
      const verified = await compactVerify(token, await importJWK(jwk as JWK, alg))
      expect(verified.protectedHeader).toEqual({ ...head, alg, kid: loaded.kid })
      expect(JSON.parse(Buffer.from(verified.payload).toString())).toEqual({ a: 'ü' })
    }
  })

  test('does not let the caller choose alg or kid', async () => {
    const token = await key.sign({ typ: 'JWT', alg: 'none', kid: 'x' }, {})
    expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())).toEqual({
      typ: 'JWT',
      alg: 'RS256',
      kid: key.kid,
    })
  })

  test('refuses a private key that is not the public key’s, and keys of other kinds', () => {
    expect(() => loadSigningKey(issuerKey.privateKey, other.publicJwk)).toThrow(/belong/)
    expect(() => loadSigningKey(curve('ed25519').pem, curve('ed25519').jwk)).toThrow(/belong/)
    expect(() => loadSigningKey(issuerKey.privateKey, { ...issuerKey.publicJwk, alg: 'PS256' })).toThrow()
    for (const pair of [
      generateKeyPairSync('rsa', { modulusLength: 1024 }),
      generateKeyPairSync('ec', { namedCurve: 'P-384' }),
      generateKeyPairSync('ed448'),
      generateKeyPairSync('x25519'),
    ]) {
      const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      expect(() => loadSigningKey(pem, pair.publicKey.export({ format: 'jwk' }))).toThrow(/signing key/)
    }
  })

  test('signs on the thread pool: no signature is there before the event loop has turned', async () => {
    let done = false
    const signing = key.sign({ typ: 'JWT' }, {}).then(() => {
      done = true
    })
    // Microtasks run without a turn of the loop, and only a turn can bring a result from the pool.
    for (let count = 0; count < 1_000; count += 1) await Promise.resolve()
    expect(done).toBe(false)
    await signing
    expect(done).toBe(true)
  })
})

test('thumbprint agrees with RFC 7638 §3.1 and RFC 8037 appendix A.3', () => {
  expect(thumbprint({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' })).toBe(
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  )
  expect(() => thumbprint({ kty: 'oct', k: 'AA' } as JsonWebKey as Record<string, unknown>)).toThrow()
})
