import { createHmac, createPublicKey, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  AWAY,
  GITHUB,
  type Json,
  now,
  of,
  present,
  refusal,
  refuses,
  signers,
  TENANTS,
  tenant,
  useAttackedServer,
  waitAMinute,
} from '../support/identity-attacks.ts'
import { encoded, newSigner, times } from '../support/identity-tokens.ts'
import { AUDIENCE, type PresetName, presetToken } from '../support/preset-tokens.ts'

/** Tokens of other issuers, keys and times, and used ones: each is refused, the audit has the reason, and the reply never does. */
const server = useAttackedServer()

describe('another issuer', () => {
  const iss = (issuer: string, preset: PresetName = 'github') => of(preset, { iss: issuer })
  refuses([
    ['with a slash at the end', iss(`${GITHUB}/`), 'unknown_issuer', ''],
    ['with capitals in the host', iss('https://Token.actions.githubusercontent.com'), 'unknown_issuer', ''],
    ['over plain HTTP', iss('http://token.actions.githubusercontent.com'), 'unknown_issuer', ''],
    ['with a port', iss(`${GITHUB}:443`), 'unknown_issuer', ''],
    ['of an enterprise at GitHub', iss(`${GITHUB}/evil`), 'unknown_issuer', ''],
    ['of an enterprise server', iss('https://ghe.evil.test/_services/token'), 'unknown_issuer', ''],
    ['whose path is the address of ours', iss(`https://evil.test/${GITHUB}`), 'unknown_issuer', ''],
    ['whose host begins with ours', iss(`${GITHUB}.evil.test`), 'unknown_issuer', ''],
    [
      'whose user is our host',
      iss('https://token.actions.githubusercontent.com@evil.test'),
      'unknown_issuer',
      '',
    ],
    ['with white space', iss(`${GITHUB} `), 'unknown_issuer', ''],
    ['in a list', of('github', { iss: [GITHUB] }), 'malformed'],
    ['none', of('github', { iss: undefined }), 'unknown_issuer', ''],
    [
      'with a slash where the pattern has a segment',
      of('gitlab', tenant({ iss: `https://${TENANTS}/acme/evil` }), {}, signers.tenants),
      'unknown_issuer',
      '',
    ],
    [
      'with the host of the pattern in its path',
      of('gitlab', tenant({ iss: `https://evil.test/${TENANTS}/acme` }), {}, signers.tenants),
      'unknown_issuer',
      '',
    ],
    [
      'with any character where the pattern has a dot',
      of('gitlab', tenant({ iss: 'https://gitlabxtenants.test/acme' }), {}, signers.tenants),
      'unknown_issuer',
      '',
    ],
    [
      'with a query after the pattern',
      of('gitlab', tenant({ iss: `https://${TENANTS}/acme?x` }), {}, signers.tenants),
      'unknown_issuer',
      '',
    ],
    [
      'of a trust domain that begins with ours',
      of('spiffe', { sub: 'spiffe://example.org.evil.test/ns/agents/sa/worker' }),
      'unknown_issuer',
      '',
    ],
    [
      'of a trust domain in capitals',
      of('spiffe', { sub: 'spiffe://Example.org/ns/agents/sa/worker' }),
      'unknown_issuer',
      '',
    ],
    [
      'of a trust domain with dots in the path',
      of('spiffe', { sub: 'spiffe://example.org/ns/../sa/worker' }),
      'unknown_issuer',
      '',
    ],
    [
      'which is this server',
      () => signers.other.sign({ iss: 'https://mayfly.test', sub: 'agent', aud: AUDIENCE, ...times(now()) }),
      'unknown_issuer',
      '',
    ],
  ])
})

describe('the key of somebody else', () => {
  const twin = newSigner('RS256', signers.github.kid)
  refuses([
    ['of another trusted issuer', of('github', {}, {}, signers.gitlab), 'unknown_key', ''],
    [
      'of another trusted issuer, by the name of the right one',
      of('github', {}, { kid: signers.github.kid }, signers.gitlab),
      'signature',
      '',
    ],
    ['of nobody, by the name of the right one', of('github', {}, {}, twin), 'signature', ''],
    [
      'of a tenant, at the issuer of another trust domain',
      of('spiffe', {}, {}, newSigner('ES256')),
      'unknown_key',
      '',
    ],
    ['that is in the token', of('github', {}, { jwk: twin.jwk }, twin), 'malformed'],
    ['at an address in the token', of('github', {}, { jku: 'https://evil.test/jwks' }, twin), 'malformed'],
    [
      'at an address of a certificate in the token',
      of('github', {}, { x5u: 'https://evil.test/crt' }, twin),
      'malformed',
    ],
    [
      'in a certificate in the token',
      of('github', {}, { x5c: ['MIIB'], kid: undefined }, twin),
      'signature',
      '',
    ],
    ['with a path as its name', of('github', {}, { kid: '../../dev/null' }, twin), 'unknown_key', ''],
    ['with a name of every object', of('github', {}, { kid: 'constructor' }, twin), 'unknown_key', ''],
    ['that is no key: alg none', unsigned, 'algorithm', ''],
    ['that is the public key as a secret', bySharedSecret, 'algorithm', ''],
    [
      'that is another algorithm than the key',
      of('github', {}, { alg: 'ES256' }, newSigner('ES256', signers.github.kid)),
      'unknown_key',
      '',
    ],
    ['under members that must be understood', of('github', {}, { crit: ['exp'], exp: 1 }), 'malformed'],
    ['over other claims', altered, 'signature', ''],
    ['with a claim twice', twice, 'malformed'],
  ])
})

function unsigned(): string {
  return `${encoded({ alg: 'none', typ: 'JWT' })}.${encoded(presetToken('github').claims)}.AA`
}

function bySharedSecret(): string {
  const pem = createPublicKey({ key: signers.github.jwk, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  })
  const body = `${encoded({ alg: 'HS256', typ: 'JWT', kid: signers.github.kid })}.${of('github')().split('.')[1]}`
  return `${body}.${createHmac('sha256', pem).update(body).digest('base64url')}`
}

function altered(): string {
  const [header, payload = '', signature] = of('github', { repository_id: '75' })().split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Json
  return [header, encoded({ ...claims, repository_id: '74' }), signature].join('.')
}

function twice(): string {
  const { github } = signers
  const [header, payload = ''] = of('github', { repository_id: '75' })().split('.')
  const text = Buffer.from(payload, 'base64url').toString().replace('{', '{"repository_id":"74",')
  const body = `${header}.${Buffer.from(text).toString('base64url')}`
  return `${body}.${github.signBytes(body)}`
}

describe('a token at another time', () => {
  const seconds = () => Math.floor(now() / 1_000)
  const at = (claims: () => Json) => () => of('github', claims())()
  refuses([
    ['that has ended', at(() => ({ iat: seconds() - 300, exp: seconds() - 61 })), 'expired', ''],
    ['that is too old', at(() => ({ iat: seconds() - 601, exp: seconds() + 300 })), 'too_old', ''],
    ['that is not valid yet', at(() => ({ nbf: seconds() + 120 })), 'not_yet_valid', ''],
    ['from tomorrow', at(() => ({ iat: seconds() + 86_400, exp: seconds() + 86_700 })), 'not_yet_valid', ''],
    ['that never ends', at(() => ({ exp: undefined })), 'malformed'],
    ['without an age', at(() => ({ iat: undefined })), 'malformed'],
    [
      'from a secret of Kubernetes',
      () => of('kubernetes', { exp: undefined, iat: undefined, nbf: undefined })(),
      'legacy',
      '',
    ],
    [
      'of a service account without a pod',
      () => of('kubernetes', { 'kubernetes.io': withoutPod() })(),
      'legacy',
      '',
    ],
  ])
})

function withoutPod(): Json {
  const { pod: _, ...rest } = presetToken('kubernetes').claims['kubernetes.io'] as Record<string, unknown>
  return rest
}

describe('a token that was used', () => {
  test('once is refused, also with another signature, and what the first login got goes on', async () => {
    const { spiffe } = signers
    const token = of('spiffe', { jti: undefined })()
    const first = await present(token)
    expect(first.status).toBe(200)
    waitAMinute()
    expect(await refusal(token)).toEqual(['repeated', undefined])
    waitAMinute()
    const signedPart = token.slice(0, token.lastIndexOf('.'))
    expect(await refusal(`${signedPart}.${spiffe.signBytes(signedPart)}`)).toEqual(['repeated', undefined])
    const { access_token: access } = JSON.parse(first.text) as { access_token: string }
    expect((await server().as(access).get('/api/v1/backends')).status).toBe(200)
  })

  test('is refused by its id, in another token', async () => {
    const jti = randomUUID()
    expect((await present(of('github', { jti })())).status).toBe(200)
    waitAMinute()
    expect(await refusal(of('github', { jti, run_id: '5' })())).toEqual(['repeated', undefined])
  })

  test('by many at once logs one of them in', async () => {
    waitAMinute()
    const token = of('github', { run_id: '77' })()
    const replies = await Promise.all(Array.from({ length: 8 }, () => present(token)))
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

test('nothing of a token that was not signed is in the audit or the log', async () => {
  const secret = 'a-value-of-the-stranger'
  const forged = newSigner('RS256', signers.github.kid)
  waitAMinute()
  await refusal(of('github', { sub: secret, repository: secret, run_id: secret }, {}, forged)())
  waitAMinute()
  await refusal(of('github', { iss: `https://${secret}.test` })())
  const audit = await server().local.get('/v1/admin/audit?limit=1000')
  expect(audit.text).not.toContain(secret)
  expect(server().logged()).not.toContain(secret)
})

test('of an issuer that is away, nobody can say whether it is one: the reply says to try again', async () => {
  waitAMinute()
  const token = signers.other.sign({ iss: AWAY, sub: 'job', aud: AUDIENCE, ...times(now()) })
  const { status, text } = await present(token)
  expect([status, JSON.parse(text)]).toMatchObject([503, { error: 'temporarily_unavailable' }])
  expect(text).not.toContain('127.0.0.1')
  await server().core.denials.flush(Number.POSITIVE_INFINITY)
  const [entry] = (await server().local.get('/v1/admin/audit?action=token.refused&limit=1')).body
  expect(entry.details).toMatchObject({ reason: 'keys_unavailable', entries: ['away'] })
  expect(server().logged()).toContain('the keys of an issuer cannot be had')
})
