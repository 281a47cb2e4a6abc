import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { generateIssuerKey, loadSigningKey, verifyAccessToken } from './jwt-keys.ts'

const ISSUER = 'https://mayfly.example.com'
const NOW = Date.UTC(2026, 10, 1, 12)
const SECONDS = NOW / 1000

const issuerKey = await generateIssuerKey(ISSUER, NOW)
const key = loadSigningKey(issuerKey.privateKey, issuerKey.publicJwk)
const other = await generateIssuerKey(ISSUER, NOW)
const otherKey = loadSigningKey(other.privateKey, other.publicJwk)

const header = { typ: 'at+jwt', alg: 'RS256', kid: key.kid }
const claims = {
  iss: ISSUER,
  sub: 'ag_1',
  aud: ISSUER,
  exp: SECONDS + 3600,
  iat: SECONDS,
  jti: 'jti-1',
  client_id: 'agent_1',
  scope: 'github:o/r',
  agent_id: 'ag_1',
  agent_name: 'ci',
  scopes: ['github:o/r'],
}

function b64(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

/** Signs any header and claims with the issuer's real key, so that only the checks can refuse the token. */
function forge(head: unknown, body: unknown, pem = issuerKey.privateKey): string {
  const input = `${b64(head)}.${b64(body)}`
  return `${input}.${sign('sha256', Buffer.from(input), createPrivateKey(pem)).toString('base64url')}`
}

function hmac(secret: string | Buffer, head: unknown): string {
  const input = `${b64(head)}.${b64(claims)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

const without = (name: string) => Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name))
const verify = (token: unknown, now = NOW) =>
  verifyAccessToken(token as string, [issuerKey], { issuer: ISSUER, audience: ISSUER, now })

const good = await key.sign({ typ: 'at+jwt' }, claims)
const [goodHead, goodBody, goodSignature] = good.split('.') as [string, string, string]
const foreign = await otherKey.sign({ typ: 'at+jwt' }, claims)
const spki = createPublicKey(issuerKey.privateKey).export({ type: 'spki', format: 'pem' }).toString()

describe('verifyAccessToken', () => {
  test('reads a good token', async () => {
    expect(await verify(good)).toEqual({
      jti: 'jti-1',
      subject: 'ag_1',
      clientId: 'agent_1',
      agentId: 'ag_1',
      agentName: 'ci',
      scopes: ['github:o/r'],
      audience: ISSUER,
      issuedAt: NOW,
      expiresAt: NOW + 3_600_000,
      kid: key.kid,
      rotation: 0,
    })
    expect(await verify(forge(header, claims))).toBeDefined()
  })

  test('takes an audience array that holds ours, empty scopes, and either of two keys', async () => {
    expect(await verify(forge(header, { ...claims, aud: ['x', ISSUER] }))).toBeDefined()
    expect((await verify(forge(header, { ...claims, scopes: [], scope: '' })))?.scopes).toEqual([])
    expect((await verify(forge(header, { ...claims, rotation: 2 })))?.rotation).toBe(2)
    const theirs = await otherKey.sign({ typ: 'at+jwt' }, claims)
    const expected = { issuer: ISSUER, audience: ISSUER, now: NOW }
    expect((await verifyAccessToken(theirs, [issuerKey, other], expected))?.kid).toBe(other.kid)
    expect(await verifyAccessToken(theirs, [], expected)).toBeUndefined()
  })

  test('tolerates 5 s of clock difference and no more, to the ms', async () => {
    const expiresAt = NOW + 3_600_000
    expect(await verify(good, expiresAt + 4_999)).toBeDefined()
    expect(await verify(good, expiresAt + 5_000)).toBeUndefined()
    expect(await verify(good, NOW - 5_000)).toBeDefined()
    expect(await verify(good, NOW - 5_001)).toBeUndefined()
  })

  const jwkHeader = { ...header, jwk: other.publicJwk }
  const hostile: [string, unknown][] = [
    ['alg none with no signature', `${b64({ ...header, alg: 'none' })}.${goodBody}.`],
    ['alg none with a signature', forge({ ...header, alg: 'none' }, claims)],
    ['alg None', forge({ ...header, alg: 'None' }, claims)],
    ['no alg', forge({ typ: 'at+jwt', kid: key.kid }, claims)],
    ['alg as an array', forge({ ...header, alg: ['RS256'] }, claims)],
    ['HS256 with the public PEM as secret', hmac(spki, { ...header, alg: 'HS256' })],
    ['HS256 with n as secret', hmac(String(issuerKey.publicJwk['n']), { ...header, alg: 'HS256' })],
    ['an HMAC under alg RS256', hmac(spki, header)],
    ['PS256 in name', forge({ ...header, alg: 'PS256' }, claims)],
    ['RS512 in name', forge({ ...header, alg: 'RS512' }, claims)],
    ['RS384 in name', forge({ ...header, alg: 'RS384' }, claims)],
    ['ES256 in name', forge({ ...header, alg: 'ES256' }, claims)],
    ['HS256 with no secret', hmac('', { ...header, alg: 'HS256' })],
    ['HS256 with the key id as secret', hmac(key.kid, { ...header, alg: 'HS256' })],
    ['compression', forge({ ...header, zip: 'DEF' }, claims)],
    ['typ secevent+jwt', forge({ ...header, typ: 'secevent+jwt' }, claims)],
    ['an empty typ', forge({ ...header, typ: '' }, claims)],
    ['a kid that is a path', forge({ ...header, kid: '../../../../dev/null' }, claims)],
    ['a kid that is SQL', forge({ ...header, kid: "' OR 1=1 --" }, claims)],
    ['a padded header', `${goodHead}=.${goodBody}.${goodSignature}`],
    ['a lengthened signature', `${good}AAAA`],
    ['no typ', forge({ alg: 'RS256', kid: key.kid }, claims)],
    ['typ JWT, as an id token has', forge({ ...header, typ: 'JWT' }, claims)],
    ['typ application/at+jwt', forge({ ...header, typ: 'application/at+jwt' }, claims)],
    ['typ AT+JWT', forge({ ...header, typ: 'AT+JWT' }, claims)],
    ['an id token', forge({ ...header, typ: 'JWT' }, { ...claims, aud: ['agent_1'], auth_time: SECONDS })],
    ['no kid', forge({ typ: 'at+jwt', alg: 'RS256' }, claims)],
    ['an unknown kid', forge({ ...header, kid: 'unknown' }, claims)],
    ['an empty kid', forge({ ...header, kid: '' }, claims)],
    ['kid __proto__', forge({ ...header, kid: '__proto__' }, claims)],
    ['kid as a number', forge({ ...header, kid: 1 }, claims)],
    ['another key under our kid', forge(header, claims, other.privateKey)],
    ['another key under its own kid', foreign],
    ['jwk in the header, signed by it', forge(jwkHeader, claims, other.privateKey)],
    ['jwk in the header, signed by us', forge(jwkHeader, claims)],
    ['jku in the header', forge({ ...header, jku: 'https://evil.example/jwks' }, claims)],
    ['x5u in the header', forge({ ...header, x5u: 'https://evil.example/c' }, claims)],
    ['x5c in the header', forge({ ...header, x5c: other.publicJwk['x5c'] }, claims)],
    ['crit in the header', forge({ ...header, crit: ['exp'] }, claims)],
    ['b64 false in the header', forge({ ...header, b64: false, crit: ['b64'] }, claims)],
    ['an unknown header member', forge({ ...header, x: 'y' }, claims)],
    ['a header that is an array', forge([header], claims)],
    ['a header that is null', forge('null', claims)],
    ['a header that is no JSON', forge('{', claims)],
    ['a header with a BOM', forge(`\uFEFF${JSON.stringify(header)}`, claims)],
    ['a header of 3,000 brackets', forge('['.repeat(3000), claims)],
    ['a padded signature', `${good}==`],
    ['a padded payload', `${goodHead}.${goodBody}=.${goodSignature}`],
    ['a trailing newline', `${good}\n`],
    ['a trailing NUL', `${good}\0`],
    ['a leading space', ` ${good}`],
    ['a tab inside', `${goodHead}.\t${goodBody}.${goodSignature}`],
    ['the word Bearer', `Bearer ${good}`],
    ['stray low bits in the signature', `${good.slice(0, -1)}${strayBits(good)}`],
    ['base64 instead of base64url', good.replaceAll('-', '+').replaceAll('_', '/').concat('+')],
    ['4 parts', `${good}.AAAA`],
    ['5 parts, as a JWE has', `${good}.AAAA.AAAA`],
    ['2 parts', `${goodHead}.${goodBody}`],
    ['an empty payload', `${goodHead}..${goodSignature}`],
    ['no signature', `${goodHead}.${goodBody}.`],
    ['dots', '..'],
    ['a cut signature', good.slice(0, -4)],
    ['a signature of zeros', `${goodHead}.${goodBody}.${Buffer.alloc(256).toString('base64url')}`],
    [
      'the header of one and the body of another',
      `${goodHead}.${b64({ ...claims, sub: 'ag_2' })}.${goodSignature}`,
    ],
    ['5 KiB', forge(header, { ...claims, pad: 'x'.repeat(5_000) })],
    ['a megabyte of dots', '.'.repeat(1_000_000)],
    ['unicode digits', `${goodHead}.${goodBody}.${goodSignature.slice(0, -1)}１`],
    ['a Cyrillic letter', `${goodHead}.${goodBody}.${goodSignature.slice(0, -1)}а`],
    [
      'a JSON serialisation',
      JSON.stringify({ protected: goodHead, payload: goodBody, signature: goodSignature }),
    ],
    ['nothing', ''],
    ['undefined', undefined],
    ['null', null],
    ['a number', 1],
    ['an object', { toString: () => good }],
    ['an array', [good]],
    ['a payload that is an array', forge(header, [claims])],
    ['a payload that is null', forge(header, 'null')],
    ['a payload that is no JSON', forge(header, 'x')],
    ['a payload of 3,000 brackets', forge(header, '['.repeat(2_500))],
    ['exp 1e300', forge(header, { ...claims, exp: 1e300 })],
    ['exp past the year 9999', forge(header, { ...claims, exp: 253_402_300_800 })],
    ['exp as text', forge(header, { ...claims, exp: String(claims.exp) })],
    ['exp with a fraction', forge(header, { ...claims, exp: claims.exp + 0.5 })],
    ['exp null', forge(header, { ...claims, exp: null })],
    ['exp an array', forge(header, { ...claims, exp: [claims.exp] })],
    ['exp in the past', forge(header, { ...claims, iat: SECONDS - 100, exp: SECONDS - 10 })],
    ['exp zero', forge(header, { ...claims, exp: 0 })],
    ['exp negative', forge(header, { ...claims, exp: -1 })],
    ['exp in ms', forge(header, { ...claims, exp: claims.exp * 1000 })],
    ['exp before iat', forge(header, { ...claims, iat: SECONDS + 2, exp: SECONDS + 1 })],
    ['an infinite exp', forge(header, JSON.stringify(claims).replace(`"exp":${claims.exp}`, '"exp":1e999'))],
    ['iat in the future', forge(header, { ...claims, iat: SECONDS + 6 })],
    ['iat as text', forge(header, { ...claims, iat: '1' })],
    ['iat negative', forge(header, { ...claims, iat: -5 })],
    ['nbf in the future', forge(header, { ...claims, nbf: SECONDS + 6 })],
    ['nbf as text', forge(header, { ...claims, nbf: '1' })],
    ['another issuer', forge(header, { ...claims, iss: 'https://evil.example' })],
    ['our issuer with a slash', forge(header, { ...claims, iss: `${ISSUER}/` })],
    ['our issuer in upper case', forge(header, { ...claims, iss: ISSUER.toUpperCase() })],
    ['a backend of ours as issuer', forge(header, { ...claims, iss: `${ISSUER}/backends/x` })],
    ['the issuer in an array', forge(header, { ...claims, iss: [ISSUER] })],
    ['another audience', forge(header, { ...claims, aud: 'https://other.example' })],
    ['an audience array without ours', forge(header, { ...claims, aud: ['a', 'b'] })],
    ['an audience array with a number', forge(header, { ...claims, aud: [ISSUER, 1] })],
    ['an empty audience array', forge(header, { ...claims, aud: [] })],
    ['an audience that holds ours as a part', forge(header, { ...claims, aud: `${ISSUER} x` })],
    ['an audience object', forge(header, { ...claims, aud: { 0: ISSUER } })],
    ['an audience that only begins with ours', forge(header, { ...claims, aud: `${ISSUER}.evil.test` })],
    ['agent_id as an object', forge(header, { ...claims, agent_id: { $ne: null } })],
    ['sub as a number', forge(header, { ...claims, sub: 1 })],
    ['an empty sub', forge(header, { ...claims, sub: '' })],
    ['an empty jti', forge(header, { ...claims, jti: '' })],
    ['jti as an object', forge(header, { ...claims, jti: {} })],
    ['client_id as an array', forge(header, { ...claims, client_id: ['agent_1'] })],
    ['agent_id as a number', forge(header, { ...claims, agent_id: 1 })],
    ['agent_name null', forge(header, { ...claims, agent_name: null })],
    ['a rotation as text', forge(header, { ...claims, rotation: '1' })],
    ['a rotation of null', forge(header, { ...claims, rotation: null })],
    ['half a rotation', forge(header, { ...claims, rotation: 0.5 })],
    ['scopes as text', forge(header, { ...claims, scopes: 'admin:*' })],
    ['scopes with a number', forge(header, { ...claims, scopes: ['a', 1] })],
    ['scopes as an object', forge(header, { ...claims, scopes: { length: 1, 0: 'admin:*' } })],
    ['scope as an array', forge(header, { ...claims, scope: ['a'] })],
    ['required claims on a prototype', forge(header, `{"__proto__":${JSON.stringify(claims)}}`)],
    ...Object.keys(claims).map((name): [string, unknown] => [`no ${name}`, forge(header, without(name))]),
  ]

  test.each(hostile)('refuses %s', async (_name, token) => {
    expect(await verify(token)).toBeUndefined()
  })

  test('the table above is refused for its faults: the same forgery without one passes', async () => {
    expect(hostile.length).toBeGreaterThan(100)
    expect(await verify(forge(header, claims))).toBeDefined()
  })

  test('a key of another type under our kid is not used', async () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const publicJwk = pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>
    const keys = [{ kid: key.kid, publicJwk }]
    expect(
      await verifyAccessToken(good, keys, { issuer: ISSUER, audience: ISSUER, now: NOW }),
    ).toBeUndefined()
  })
})

/** The last character with a low bit set that carries no data (256 bytes end in 4 stray bits). */
function strayBits(token: string): string {
  return String.fromCharCode(token.charCodeAt(token.length - 1) + 1)
}
