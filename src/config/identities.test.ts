import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ENTRY, identityFaults, loadIdentities } from '../../test/support/identity-config.ts'
import { issuerMatches } from '../domain/identity/match.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const JWK = { ...publicKey.export({ format: 'jwk' }), kid: 'one' }

const faultsWith = (over: object) => identityFaults({ identities: [{ ...ENTRY, ...over }] })

test('reads an entry with its defaults', async () => {
  const { identities, platforms } = await loadIdentities({ identities: [ENTRY] })
  expect(platforms).toEqual([])
  const [entry] = identities
  expect(entry).toMatchObject({
    name: 'ci',
    issuer: { kind: 'issuer', issuer: ENTRY.issuer },
    audience: ENTRY.audience,
    agent: { text: 'ci-{run_id}', parts: [{ text: 'ci-' }, { claim: 'run_id' }] },
    concurrent: 'share',
    scopes: ENTRY.scopes,
    maxTtlMs: undefined,
    agentTtlMs: 3_600_000,
    tokenTtlMs: undefined,
    maxAgeMs: 600_000,
    once: true,
    mode: 'enforce',
    tokenReview: undefined,
    keys: { jwks: undefined, jwksUri: undefined, ca: undefined, local: false },
  })
  const [id, event] = entry?.claims ?? []
  expect([id?.claim, id?.isPattern, id?.matches('74'), id?.matches('740')]).toEqual([
    'repository_id',
    false,
    true,
    false,
  ])
  expect([event?.matches('push'), event?.matches('pushed'), event?.matches('xrelease')]).toEqual([
    true,
    false,
    false,
  ])
})

test('reads every setting of an entry', async () => {
  const { identities } = await loadIdentities({
    identities: [
      {
        ...ENTRY,
        concurrent: 'suffix',
        max_ttl: '15m',
        agent_ttl: '5s',
        token_ttl: '2m',
        max_age: '1d',
        once: false,
        mode: 'observe',
        jwks: { keys: [JWK] },
        local: true,
        token_review: { url: 'https://k8s.example', token_file: '/token' },
      },
    ],
  })
  expect(identities[0]).toMatchObject({
    concurrent: 'suffix',
    maxTtlMs: 900_000,
    agentTtlMs: 5_000,
    tokenTtlMs: 120_000,
    maxAgeMs: 86_400_000,
    once: false,
    mode: 'observe',
    keys: { jwks: { keys: [JWK] }, local: true },
    tokenReview: { url: 'https://k8s.example', tokenFile: '/token' },
  })
})

const IDENTITY = 'identities.0'
describe('an entry is refused', () => {
  const cases: [string, object, string][] = [
    ['without an issuer', { issuer: undefined }, 'requires one of issuer, issuer_pattern, trust_domain'],
    ['with two issuers', { issuer_pattern: 'https://a\\.example' }, 'issuer_pattern: issuer is also set'],
    ['with an issuer and a trust domain', { trust_domain: 'a.example' }, 'trust_domain: issuer is also set'],
    ['without a subject', { subject_pattern: undefined }, 'requires one of subject, subject_pattern'],
    ['with two subjects', { subject: 'a' }, 'subject_pattern: subject is also set'],
    ['without an audience', { audience: undefined }, 'requires audience'],
    ['with an empty audience', { audience: '' }, 'audience must not be empty'],
    ['with a list of audiences', { audience: ['a'] }, 'audience must be of type string'],
    ['with an issuer over http', { issuer: 'http://a.example' }, 'must start with https://'],
    ['with an issuer that is no address', { issuer: 'a.example' }, 'is not an address'],
    ['with an issuer of another scheme', { issuer: 'file:///etc/keys' }, 'is not an address'],
    ['with a query in the issuer', { issuer: 'https://a.example?b' }, 'query or fragment'],
    ['with a fragment in the issuer', { issuer: 'https://a.example#' }, 'query or fragment'],
    ['with a user in the issuer', { issuer: 'https://u@a.example' }, 'user or password'],
    ['with dots in the issuer', { issuer: 'https://a.example/../b' }, 'contains ".."'],
    ['with two slashes in the issuer', { issuer: 'https://a.example//b' }, 'contains "..", "//"'],
    ['with a discovery document', { issuer: 'https://a.example/.well-known/x' }, 'without /.well-known/'],
    ['with a long issuer', { issuer: `https://a.example/${'a'.repeat(255)}` }, 'issuer must not have more'],
    ['with a loopback issuer', { issuer: 'https://127.0.0.1:8443' }, 'add "local: true"'],
    [
      'with a subject that is a glob',
      { subject_pattern: undefined, subject: 'repo:acme/*' },
      'stands for itself',
    ],
    ['with a subject of white space', { subject_pattern: undefined, subject: 'a\tb' }, 'white space'],
    ['with a look-ahead', { subject_pattern: 'repo:(?!evil).+' }, 'is not a pattern of RE2'],
    ['with a back reference', { subject_pattern: '(a)\\1' }, 'is not a pattern of RE2'],
    ['with an open group', { subject_pattern: 'a)(b' }, 'is not a pattern of RE2'],
    [
      'with a pattern that explodes',
      { subject_pattern: '((a{1000}){1000}){1000}' },
      'is not a pattern of RE2',
    ],
    ['with a long pattern', { subject_pattern: 'a'.repeat(513) }, 'subject_pattern must not have more'],
    ['with a claim that is a number', { claims: { repository_id: 74 } }, 'must be text in quotes'],
    ['with a claim that is a boolean', { claims: { ref_protected: true } }, 'must be text in quotes'],
    ['with a claim that is a list', { claims: { a: ['b'] } }, 'must be text in quotes'],
    ['with a claim that is empty', { claims: { a: '' } }, 'must be text in quotes'],
    ['with a wrong pattern of a claim', { claims: { a: { pattern: '[' } } }, 'claims.a.pattern: "["'],
    ['with iss as a claim', { claims: { iss: 'x' } }, 'is compared by issuer'],
    ['with aud as a claim', { claims: { aud: 'x' } }, 'is compared by audience'],
    ['with sub as a claim', { claims: { sub: 'x' } }, 'is compared by subject'],
    ['with jti as a claim', { claims: { jti: 'x' } }, 'is checked of each token'],
    ['with a name that is none', { name: 'a b' }, 'is not a name'],
    ['with a template without text', { agent: '{run_id}' }, 'no letter or digit of its own'],
    ['with an open brace', { agent: 'ci-{run_id' }, 'unmatched brace'],
    ['with text that no name has', { agent: 'ci/{run_id}' }, 'gives no name of an agent'],
    ['with a reserved name', { agent: 'Admin' }, 'is reserved'],
    ['without scopes', { scopes: [] }, 'scopes must not have fewer'],
    ['with an admin scope', { scopes: ['admin:agents:read'] }, 'is an admin scope'],
    ['with the scope admin', { scopes: ['admin'] }, 'is an admin scope'],
    ['with a scope that is none', { scopes: ['a b'] }, 'is not a scope'],
    ['with a short life of the agent', { agent_ttl: '4s' }, 'is not between 5s and'],
    ['with a lifetime that is none', { agent_ttl: '1 hour' }, 'is not a duration'],
    ['with half seconds of a token', { token_ttl: '1500ms' }, 'whole seconds'],
    ['with a long age', { max_age: '8d' }, 'is not between'],
    ['with another mode', { mode: 'audit' }, 'must be one of: enforce, observe'],
    ['with a setting that is none', { audiance: 'x' }, 'did you mean "audience"'],
    ['with keys and their address', { jwks: { keys: [JWK] }, jwks_uri: 'https://a.example/k' }, 'keep one'],
    ['with keys over http', { jwks_uri: 'http://a.example/k' }, 'must start with https://'],
    ['with an API over http', { token_review: { url: 'http://k8s.example', token_file: '/t' } }, 'https://'],
    ['with an API without a token', { token_review: { url: 'https://k8s.example' } }, 'requires token_file'],
  ]
  test.each(cases)('%s', async (_, over, message) => {
    const faults = await faultsWith(over)
    expect(faults.join('\n')).toContain(message)
    expect(
      faults.every((fault) => fault.includes(IDENTITY)),
      faults.join('\n'),
    ).toBe(true)
  })

  test.each([
    ['private', { ...privateKey.export({ format: 'jwk' }) }, 'is a private or secret key'],
    ['symmetric', { kty: 'oct', k: 'c2VjcmV0' }, 'is a private or secret key'],
    ['of another type', { kty: 'AKP', pub: 'x' }, 'is not a public key of RSA, EC or OKP'],
    ['off its curve', { ...JWK, y: JWK.x }, 'is not a public key that can be read'],
    [
      'too short',
      generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }),
      'is shorter than 2048 bits',
    ],
  ])('with a key that is %s, which it does not show', async (_, key, message) => {
    const faults = await faultsWith({ jwks: { keys: [key] } })
    expect(faults.join('\n')).toContain(`identities.0.jwks.keys.0: ${message}`)
    const { d, k } = key as { d?: string; k?: string }
    for (const secret of [d, k]) if (secret !== undefined) expect(faults.join()).not.toContain(secret)
  })

  test('but not with the keys for certificates of a trust bundle of SPIFFE, which have no name', async () => {
    const { kid: _, ...nameless } = JWK
    const keys = [
      { ...JWK, use: 'jwt-svid' },
      { ...nameless, use: 'x509-svid' },
    ]
    expect(await faultsWith({ jwks: { keys, spiffe_sequence: 1, spiffe_refresh_hint: 300 } })).toEqual([])
  })

  test('with several keys of which one has no name, or the name of another', async () => {
    const { kid: _, ...nameless } = JWK
    expect(await faultsWith({ jwks: { keys: [JWK, nameless] } })).toEqual([
      'identities.0.jwks.keys.1: has no kid, by which tokens name one of several keys',
    ])
    expect(await faultsWith({ jwks: { keys: [JWK, JWK] } })).toEqual([
      'identities.0.jwks.keys.1: has the kid of another key',
    ])
  })
})

describe('a pattern that takes every subject', () => {
  test.each([
    '.+',
    '.*',
    '^.*$',
    '(?s:.+)',
    '[^ ]+',
    '.{1,}',
    '.{24}',
    '.*.*',
    '(a|.*)',
    '[\\x00-\\x{10FFFF}]*',
    '.*:.*',
    'repo:.+',
    'repo:.*:.*',
    'repo:[^/]+/[^:]+:.*',
    'project_path:.*',
    'organization:[^:]+:.+',
  ])('%s requires a claim that is compared by equality', async (subject_pattern) => {
    const over = { subject_pattern, claims: { ref: { pattern: 'refs/.+' } } }
    expect(await faultsWith(over)).toEqual([
      'identities.0.subject_pattern: takes every subject: add a claim that is compared by equality, such as repository_id: "123"',
    ])
    expect(await faultsWith({ ...over, claims: { repository_id: '74' } })).toEqual([])
  })

  test.each([
    'repo:acme/.+',
    'repo:acme/app:ref:refs/heads/.+',
    'system:serviceaccount:prod:.+',
    '.*@acme\\.example',
  ])('%s is none', async (subject_pattern) => {
    expect(await faultsWith({ subject_pattern, claims: undefined })).toEqual([])
  })

  test('of a trust domain is one that takes all its paths', async () => {
    const over = { issuer: undefined, trust_domain: 'prod.example', jwks: { keys: [JWK] }, claims: undefined }
    expect(await faultsWith({ ...over, subject_pattern: 'spiffe://.+' })).toHaveLength(1)
    expect(await faultsWith({ ...over, subject_pattern: 'spiffe://prod\\.example/ns/ci/.+' })).toEqual([])
  })
})

describe('a pattern of issuers', () => {
  const rule = async (issuer_pattern: string, local = false) => {
    const { identities } = await loadIdentities({
      identities: [{ ...ENTRY, issuer: undefined, issuer_pattern, local }],
    })
    const [entry] = identities
    if (entry === undefined) throw new Error('none')
    return (issuer: string) => issuerMatches(entry.issuer, { issuer, subject: 'x' })
  }

  test('is compared segment by segment', async () => {
    const matches = await rule('https://oidc\\.circleci\\.com/org/[^x]+')
    expect(matches('https://oidc.circleci.com/org/1f-2')).toBe(true)
    for (const issuer of [
      'https://oidc.circleci.com/org/a/b',
      'https://oidc.circleci.com/org/a/',
      'https://oidc.circleci.com/org/',
      'https://oidc.circleci.com/org',
      'https://oidc.circleci.com/org/a?b',
      'https://oidcxcircleci.com/org/a',
      'http://oidc.circleci.com/org/a',
      'https://evil.example/https://oidc.circleci.com/org/a',
    ])
      expect(matches(issuer), issuer).toBe(false)
  })

  test('takes hosts below one that is written out', async () => {
    const matches = await rule('https://token\\.actions\\.[a-z0-9-]+\\.ghe\\.com')
    expect(matches('https://token.actions.acme.ghe.com')).toBe(true)
    for (const issuer of [
      'https://token.actions.acme.ghe.com.evil.example',
      'https://token.actions.acme.ghe.com/x',
      'https://token.actions.a.b.ghe.com',
      'https://token.actions.acmeXghe.com',
    ])
      expect(matches(issuer), issuer).toBe(false)
  })

  test('of a local issuer may be an address with any port', async () => {
    const matches = await rule('http://127\\.0\\.0\\.1:\\d+/tenant-[a-z]+', true)
    expect(matches('http://127.0.0.1:4000/tenant-a')).toBe(true)
    expect(matches('http://127.0.0.1:4000/tenant-a/b')).toBe(false)
  })

  test.each([
    ['https://.+', 'leaves open whose host it is'],
    ['https://[^/]+\\.ghe\\.com', 'each part between slashes is a pattern of its own'],
    ['https://token.actions.ghe.com', 'write its last two labels out'],
    ['https://.+\\.com', 'write its last two labels out'],
    ['https://.+|a\\.ghe\\.com', 'takes every host'],
    ['http://a\\.ghe\\.com', 'does not begin with https://'],
    ['.*', 'does not begin with https://'],
    ['https?://a\\.ghe\\.com', 'does not begin with https://'],
    ['https://a\\.ghe\\.com//b', 'has an empty part'],
    ['https://a\\.ghe\\.com/(b/c)', 'each part between slashes'],
  ])('%s is refused', async (issuer_pattern, message) => {
    expect((await faultsWith({ issuer: undefined, issuer_pattern })).join('\n')).toContain(message)
  })
})
