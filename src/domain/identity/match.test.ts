import { describe, expect, test } from 'vitest'
import type { ClaimRule, Identity, TextRule } from './identity.ts'
import {
  audienceMatches,
  failedCondition,
  isIssuer,
  isSubject,
  issuerMatches,
  readClaim,
  trustDomainOf,
} from './match.ts'

const equal = (text: string): TextRule => ({ text, isPattern: false, matches: (value) => value === text })
const pattern = (text: string): TextRule => {
  const whole = new RegExp(`^(?:${text})$`)
  return { text, isPattern: true, matches: (value) => whole.test(value) }
}
const claim = (name: string, rule: TextRule): ClaimRule => ({ claim: name, ...rule })

const entry = (over: Partial<Identity> = {}): Identity => ({
  name: 'ci',
  issuer: { kind: 'issuer', issuer: 'https://issuer.example' },
  audience: 'https://mayfly.example',
  subject: equal('repo:acme/app'),
  claims: [claim('ref', pattern('refs/heads/.+')), claim('repository_id', equal('74'))],
  agent: { text: 'ci', parts: [{ text: 'ci' }] },
  concurrent: 'share',
  scopes: ['github:read'],
  maxTtlMs: undefined,
  agentTtlMs: 3_600_000,
  tokenTtlMs: undefined,
  maxAgeMs: 600_000,
  once: true,
  mode: 'enforce',
  tokenReview: undefined,
  keys: { jwks: undefined, jwksUri: undefined, ca: undefined, local: false },
  ...over,
})

const CLAIMS = { aud: 'https://mayfly.example', repository_id: '74', ref: 'refs/heads/main' }
const token = (claims: Record<string, unknown> = {}, subject = 'repo:acme/app') => ({
  issuer: 'https://issuer.example',
  subject,
  claims: { ...CLAIMS, ...claims },
})

describe('the first condition that fails', () => {
  test('is none for a token that meets all', () => {
    expect(failedCondition(entry(), token())).toBeUndefined()
  })

  test.each([
    ['the audience comes first', token({ aud: 'x', repository_id: '1' }, 'repo:x'), 'audience', 'audience'],
    ['then the subject', token({ repository_id: '1' }, 'repo:acme/app2'), 'subject', 'subject'],
    [
      'then claims compared by equality',
      token({ repository_id: '1', ref: 'x' }),
      'claim',
      'claims.repository_id',
    ],
    ['patterns come last', token({ ref: 'refs/tags/v1' }), 'claim', 'claims.ref'],
    ['a claim that is missing', token({ repository_id: undefined }), 'claim', 'claims.repository_id'],
    [
      'a claim that is a list of the value',
      token({ repository_id: ['74'] }),
      'claim',
      'claims.repository_id',
    ],
    ['a claim that is null', token({ repository_id: null }), 'claim', 'claims.repository_id'],
  ])('%s', (_, presented, reason, condition) => {
    expect(failedCondition(entry(), presented)).toEqual({ reason, condition })
  })

  test('names a pattern of the subject, which takes the whole value', () => {
    const subject = pattern('repo:acme/app')
    const failed = { reason: 'subject', condition: 'subject_pattern' }
    for (const other of ['repo:acme/app:pull_request', 'xrepo:acme/app', 'repo:acme/app\n', 'REPO:acme/app'])
      expect(failedCondition(entry({ subject }), token({}, other)), other).toEqual(failed)
  })

  test('a subject that is no subject meets not even a pattern for everything', () => {
    expect(failedCondition(entry({ subject: pattern('[^]*') }), token({}, 'a\nb'))?.reason).toBe('subject')
  })

  test('a number is its digits, and so are booleans', () => {
    const claims = [claim('n', equal('74')), claim('b', equal('true'))]
    expect(failedCondition(entry({ claims }), token({ n: 74, b: true }))).toBeUndefined()
    expect(failedCondition(entry({ claims }), token({ n: 74, b: false }))?.condition).toBe('claims.b')
    expect(failedCondition(entry({ claims }), token({ n: '074', b: true }))?.condition).toBe('claims.n')
  })
})

describe('the audience', () => {
  const { audience } = entry()
  test.each([
    [audience, true],
    [[audience], true],
    [['other', audience], false],
    [[audience, 'other'], false],
    [[audience, audience], false],
    [[[audience]], false],
    [[], false],
    [`${audience}/`, false],
    [audience.toUpperCase(), false],
    [undefined, false],
    [null, false],
    [{ 0: audience, length: 1 }, false],
  ])('%j: %s', (aud, matches) => {
    expect(audienceMatches({ audience }, aud)).toBe(matches)
  })
})

describe('the issuer', () => {
  const facts = (issuer: string | undefined, subject = 'x') => ({ issuer, subject })

  test.each([
    'https://issuer.example/',
    'https://ISSUER.example',
    'http://issuer.example',
    'https://issuer.example/a',
    undefined,
  ])('is compared as it is: %s', (issuer) => {
    expect(issuerMatches({ kind: 'issuer', issuer: 'https://issuer.example' }, facts(issuer))).toBe(false)
  })

  test('of a pattern is an address first', () => {
    const rule = { kind: 'pattern', rule: pattern(String.raw`https://.+\.ghe\.com`) } as const
    expect(issuerMatches(rule, facts('https://a.ghe.com'))).toBe(true)
    for (const issuer of [
      'https://evil.example?x.ghe.com',
      'https://evil.example#.ghe.com',
      'https://evil.example\\.ghe.com',
      'https://a@b.ghe.com',
      'https://a..ghe.com',
      'https:// .ghe.com',
    ])
      expect(issuerMatches(rule, facts(issuer)), issuer).toBe(false)
    expect(issuerMatches(rule, facts(undefined))).toBe(false)
  })

  test.each([
    ['spiffe://prod.example/ns/a/sa/b', 'prod.example'],
    ['spiffe://prod.example', undefined],
    ['spiffe://prod.example/', undefined],
    ['spiffe://prod.example//a', undefined],
    ['spiffe://prod.example/a/', undefined],
    ['spiffe://prod.example/a/../b', undefined],
    ['spiffe://prod.example/./b', undefined],
    ['spiffe://prod.example/a%2fb', undefined],
    ['spiffe://PROD.example/a', undefined],
    ['spiffe://user@prod.example/a', undefined],
    ['spiffe://prod.example:443/a', undefined],
    ['spiffe://prod.example/a?b', undefined],
    ['https://prod.example/a', undefined],
  ])('%s is of the trust domain %s', (subject, domain) => {
    expect(trustDomainOf(subject)).toBe(domain)
    const rule = { kind: 'trust_domain', domain: 'prod.example' } as const
    expect(issuerMatches(rule, facts(undefined, subject))).toBe(domain !== undefined)
  })

  test('of another trust domain does not match', () => {
    const rule = { kind: 'trust_domain', domain: 'prod.example' } as const
    expect(issuerMatches(rule, facts(undefined, 'spiffe://dev.prod.example/a'))).toBe(false)
    expect(issuerMatches(rule, facts(undefined, 'spiffe://prod.example.evil/a'))).toBe(false)
  })
})

test.each([
  ['https://token.actions.githubusercontent.com', true],
  ['https://token.actions.githubusercontent.com/acme', true],
  ['https://accounts.example/', true],
  ['http://127.0.0.1:8080/a', true],
  ['http://[::1]:8080', true],
  ['https://oidc.circleci.com/org/1f3-a', true],
  ['https://a.example//b', false],
  ['https://a.example/b/', true],
  ['https://a.example/../b', false],
  ['https://a.example?b', false],
  ['https://a.example/#b', false],
  ['https://u:p@a.example', false],
  ['ftp://a.example', false],
  ['https://', false],
  ['https:///a', false],
  ['https://a .example', false],
  ['https://a.example\n', false],
  [`https://a.example/${'a'.repeat(240)}`, false],
])('an issuer is an address: %s %s', (text, is) => {
  expect(isIssuer(text)).toBe(is)
})

test.each([
  ['repo:acme/app:ref:refs/heads/main', true],
  ['repo:acme@12/app@34:environment:prod', true],
  ['organization:acme:project:Default Project:workspace:w:run_phase:plan', true],
  ['spiffe://prod.example/a', true],
  ['repo:acme/app:environment:a%3Ab', true],
  ['x'.repeat(255), true],
  ['', false],
  ['x'.repeat(256), false],
  [' a', false],
  ['a ', false],
  ['a  b', false],
  ['a\tb', false],
  ['a\u00a0b', false],
  ['a\u202eb', false],
  ['a\0b', false],
  ['a"b', false],
  ['<a>', false],
  ['a[b]', false],
  ['{1de489be-ce6a}:{759de0c6-eaee}', true],
  ['a\\b', false],
])('a subject has no text that could be something else: %j %s', (text, is) => {
  expect(isSubject(text)).toBe(is)
})

describe('a claim', () => {
  const claims = JSON.parse(`{
    "kubernetes.io": {"namespace": "prod", "serviceaccount": {"name": "a", "uid": "u-1"}},
    "kubernetes.io/namespace": "whole",
    "https://sts.amazonaws.com/": {"aws_account": "123"},
    "a/b": {"c": "long"}, "a": {"b/c": "short", "b": {"d": "deep"}},
    "n": 5, "big": 12345678901234567890, "f": 1.5, "t": true, "l": ["x"], "o": {}, "z": null, "e": "",
    "__proto__": {"p": "own"}
  }`)
  test.each([
    ['kubernetes.io/serviceaccount/uid', 'u-1'],
    ['kubernetes.io/namespace', 'whole'],
    ['https://sts.amazonaws.com//aws_account', '123'],
    ['a/b/c', 'long'],
    ['a/b/d', undefined],
    ['n', '5'],
    ['t', 'true'],
    ['e', ''],
    ['big', undefined],
    ['f', undefined],
    ['l', undefined],
    ['l/0', undefined],
    ['o', undefined],
    ['z', undefined],
    ['z/a', undefined],
    ['n/toString', undefined],
    ['constructor', undefined],
    ['constructor/name', undefined],
    ['toString', undefined],
    ['missing', undefined],
    ['', undefined],
    ['/', undefined],
  ])('%s is %s', (path, value) => {
    expect(readClaim(claims, path)).toBe(value)
  })
})
