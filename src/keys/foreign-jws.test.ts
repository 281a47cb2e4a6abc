import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { encoded, newSigner, type Signer } from '../../test/support/identity-tokens.ts'
import { IdentityRefused } from '../domain/identity/identity.ts'
import { type ForeignJwk, isSignedBy, readForeignJws } from './foreign-jws.ts'

const signer = newSigner('ES256', 'k1')
const CLAIMS = { iss: 'https://issuer.test', sub: 'job' }

/** A token with this text as its header or payload, validly signed. */
function raw(header: string | Buffer, payload: string | Buffer = JSON.stringify(CLAIMS)): string {
  const body = [header, payload].map((part) => Buffer.from(part).toString('base64url')).join('.')
  return `${body}.${signer.signBytes(body)}`
}

const refusal = (token: string) => {
  try {
    readForeignJws(token)
  } catch (error) {
    if (error instanceof IdentityRefused) return error.reason
    throw error
  }
  return undefined
}

describe('reads a token that somebody else signed', () => {
  it('with its algorithm, key, claims and what is signed', () => {
    const token = signer.sign(CLAIMS)
    expect(readForeignJws(token)).toEqual({
      alg: 'ES256',
      kid: 'k1',
      claims: CLAIMS,
      signedPart: token.slice(0, token.lastIndexOf('.')),
    })
  })

  it.each([
    ['x5t', { x5t: 'eBZ_cn3sXYAd0ch4THBKHIgOwOE' }],
    ['x5t#S256', { 'x5t#S256': 'e0Z' }],
    ['x5c, which chooses no key', { x5c: ['MIIB'] }],
    ['cty and one of its own', { cty: 'JWT', 'https://issuer.test/run': 7 }],
    ['no typ', { typ: undefined }],
    ['typ jwt in small letters', { typ: 'jwt' }],
    ['typ JOSE, as SPIFFE allows', { typ: 'JOSE' }],
    ['typ at+jwt (RFC 9068)', { typ: 'at+jwt' }],
    ['no kid', { kid: undefined }],
  ])('with header members that are harmless: %s', (_, header) => {
    expect(refusal(signer.sign(CLAIMS, header))).toBeUndefined()
  })

  it('of 16 KiB, and no more', () => {
    const empty = signer.sign({ ...CLAIMS, more: '' })
    const payload = 16_384 - (empty.length - encoded({ ...CLAIMS, more: '' }).length)
    const filled = (bytes: number) => {
      const text = JSON.stringify({ ...CLAIMS, more: '' })
      return signer.sign({ ...CLAIMS, more: 'a'.repeat(bytes - text.length) })
    }
    const most = Math.floor((payload * 3) / 4)
    expect(filled(most).length).toBeGreaterThan(16_380)
    expect(filled(most).length).toBeLessThanOrEqual(16_384)
    expect(refusal(filled(most))).toBeUndefined()
    expect(refusal(filled(most + 3))).toBe('malformed')
  })
})

describe('refuses as malformed', () => {
  const header = JSON.stringify({ alg: 'ES256', kid: 'k1' })
  const good = raw(header)
  const parts = good.split('.')
  it.each<[string, string]>([
    ['nothing', ''],
    ['one part', 'abc'],
    ['two parts', parts.slice(0, 2).join('.')],
    ['four parts', `${good}.abc`],
    ['five parts, as encrypted tokens have', `${good}.abc.abc`],
    ['no signature', `${parts[0]}.${parts[1]}.`],
    ['no payload, as detached signatures have', `${parts[0]}..${parts[2]}`],
    ['white space at the end', `${good}\n`],
    ['white space inside', good.replace('.', ' .')],
    ['padding', `${good}==`],
    ['base64 that is not of URLs', good.replace(/^./, '+')],
    ['stray bits in the signature', withStrayBits(good)],
    ['another JSON than an object as header', raw('["ES256"]')],
    ['another JSON than an object as payload', raw(header, '"job"')],
    ['no JSON', raw('{"alg":"ES256"')],
    ['bad UTF-8', raw(header, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))],
    ['a byte order mark', raw(`\uFEFF${header}`)],
    ['random bytes', raw(randomBytes(40), randomBytes(40))],
    ['the same member of the header twice', raw('{"alg":"ES256","kid":"k1","kid":"k2"}')],
    ['the same claim twice', raw(header, '{"sub":"a","sub":"b"}')],
    ['the same claim twice, once escaped', raw(header, '{"sub":"a","\\u0073ub":"b"}')],
    ['a claim __proto__', raw(header, '{"__proto__":{"sub":"a"}}')],
    ['a claim with NUL', raw(header, '{"sub":"a\\u0000"}')],
    ['claims that are nested deeply', raw(header, `${'{"a":'.repeat(50)}1${'}'.repeat(50)}`)],
    ['a number that loses digits', raw(header, '{"sub":"a","id":12345678901234567890}')],
    ['crit', raw('{"alg":"ES256","kid":"k1","crit":["exp"],"exp":1}')],
    ['an empty crit', raw('{"alg":"ES256","kid":"k1","crit":[]}')],
    ['b64', raw('{"alg":"ES256","kid":"k1","b64":false}')],
    ['its own key', raw(JSON.stringify({ alg: 'ES256', kid: 'k1', jwk: signer.jwk }))],
    ['the address of a key set', raw('{"alg":"ES256","kid":"k1","jku":"https://evil.test/jwks"}')],
    ['the address of a certificate', raw('{"alg":"ES256","kid":"k1","x5u":"https://evil.test/crt"}')],
    ['a kid that is no text', raw('{"alg":"ES256","kid":1}')],
    ['an empty kid', raw('{"alg":"ES256","kid":""}')],
    ['a very long kid', raw(JSON.stringify({ alg: 'ES256', kid: 'k'.repeat(256) }))],
    ['the type of a logout', raw('{"alg":"ES256","typ":"logout+jwt"}')],
    ['the type of an event', raw('{"alg":"ES256","typ":"secevent+jwt"}')],
    ['the type of a proof', raw('{"alg":"ES256","typ":"dpop+jwt"}')],
    ['the type of a WIT-SVID, which needs a proof', raw('{"alg":"ES256","typ":"wit+jwt"}')],
    ['a type that is no text', raw('{"alg":"ES256","typ":["JWT"]}')],
    ['a token that is bound to a key', raw(header, JSON.stringify({ ...CLAIMS, cnf: { jkt: 'x' } }))],
  ])('%s', (_, token) => {
    expect(refusal(token)).toBe('malformed')
  })
})

describe('refuses the algorithm', () => {
  it.each([
    ['none', 'none'],
    ['None', 'None'],
    ['a shared secret', 'HS256'],
    ['PS256', 'PS256'],
    ['RS1', 'RS1'],
    ['RS512', 'RS512'],
    ['ES512', 'ES512'],
    ['ES256K', 'ES256K'],
    ['Ed448', 'Ed448'],
    ['small letters', 'rs256'],
    ['no algorithm', undefined],
    ['one that is no text', ['RS256']],
    ['a name of every object', 'toString'],
  ])('%s', (_, alg) => {
    expect(refusal(raw(JSON.stringify({ alg, kid: 'k1' })))).toBe('algorithm')
  })
})

describe('a signature', () => {
  const keyOf = ({ jwk: { kty, crv, n, e, x, y } }: Signer) =>
    JSON.parse(JSON.stringify({ kty, crv, n, e, x, y })) as ForeignJwk
  const verify = (token: string, jwk: ForeignJwk) => isSignedBy(token, readForeignJws(token), jwk)

  it.each(['RS256', 'ES256', 'ES384', 'EdDSA'] as const)(
    'counts by the key that made it: %s',
    async (alg) => {
      const [own, other] = [newSigner(alg), newSigner(alg)]
      expect(await verify(own.sign(CLAIMS), keyOf(own))).toBe(true)
      expect(await verify(own.sign(CLAIMS), keyOf(other))).toBe(false)
    },
  )

  it('may call EdDSA by its new name (RFC 9864)', async () => {
    const own = newSigner('EdDSA')
    expect(await verify(own.sign(CLAIMS, { alg: 'Ed25519' }), keyOf(own))).toBe(true)
  })

  it('does not count for other claims', async () => {
    const token = signer.sign(CLAIMS).split('.')
    const changed = [token[0], encoded({ ...CLAIMS, sub: 'other' }), token[2]].join('.')
    expect(await verify(changed, keyOf(signer))).toBe(false)
  })

  it.each([
    ['of zeros', Buffer.alloc(64)],
    ['that is too short', Buffer.alloc(8, 1)],
    ['as DER', Buffer.from('3006020101020101', 'hex')],
  ])('%s does not count', async (_, bytes) => {
    const token = signer.sign(CLAIMS).split('.')
    const changed = [...token.slice(0, 2), bytes.toString('base64url')].join('.')
    expect(await verify(changed, keyOf(signer))).toBe(false)
  })

  it('does not count by a point that is not on the curve', async () => {
    const key = { ...keyOf(signer), y: Buffer.alloc(32, 1).toString('base64url') }
    expect(await verify(signer.sign(CLAIMS), key)).toBe(false)
  })
})

/** The last character of 64 bytes has four bits that say nothing. */
function withStrayBits(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(token.at(-1) ?? '')
  return token.slice(0, -1) + alphabet[last + 1]
}
