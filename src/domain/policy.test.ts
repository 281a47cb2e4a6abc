import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { admissionBounds, type CompiledPolicy, decideAdmission, parseRate, tightest } from './policy.ts'
import { coversAny, isAdminScope, overlaps } from './scope.ts'

function policy(change: Partial<CompiledPolicy> = {}): CompiledPolicy {
  return {
    name: 'ci',
    matches: (name) => name.startsWith('ci-'),
    scopes: ['github:acme/*', 'db:read'],
    autoApprove: true,
    deny: [],
    ...change,
  }
}

describe('admission', () => {
  test.each<[string, Partial<CompiledPolicy>, string[] | undefined, string[]]>([
    ['none asked: those of the policy', {}, undefined, ['github:acme/*', 'db:read']],
    ['asked: cut to them', {}, ['github:acme/app:read'], ['github:acme/app:read']],
    ['asked twice: given once', {}, ['db:read', 'db:read'], ['db:read']],
    ['an empty list grants nothing', {}, [], []],
    ['beside a deny', { deny: ['github:acme/vault'] }, ['github:acme/app'], ['github:acme/app']],
    ['narrower than an admin policy', { scopes: ['admin:*', 'db'] }, ['db:read'], ['db:read']],
  ])('approves: %s', (_, change, scopes, granted) => {
    const decision = decideAdmission([policy(change)], { name: 'ci-1', scopes })
    expect(decision).toMatchObject({ decision: 'approve', scopes: granted })
  })

  test.each<[string, Partial<CompiledPolicy>, string[] | undefined, RegExp]>([
    ['not automatic', { autoApprove: false }, undefined, /administrator/],
    ['outside the policy', {}, ['github:other/x'], /not grant/],
    ['one of two outside', {}, ['db:read', 'db:write'], /not grant/],
    ['wider than the policy', {}, ['github:*'], /not grant/],
    ['everything', {}, ['*'], /not grant/],
    ['a prefix of one', {}, ['db'], /not grant/],
    ['a policy that gives nothing', { scopes: [] }, ['db:read'], /not grant/],
    ['admin asked', {}, ['admin:agents:read'], /admin scopes/],
    ['admin asked and covered', { scopes: ['admin:*'] }, ['admin:agents:read'], /admin scopes/],
    ['admin asked of all', { scopes: ['*'] }, ['admin'], /admin scopes/],
    ['all of admin asked of all', { scopes: ['*'] }, ['admin:*'], /admin scopes/],
    ['a part of admin asked of all', { scopes: ['*'] }, ['admin:agents:read'], /admin scopes/],
    ['admin among the asked', { scopes: ['admin', 'db'] }, ['db', 'admin'], /admin scopes/],
    ['admin by the policy', { scopes: ['db', 'admin:agents:read'] }, undefined, /admin scopes/],
    ['denied exactly', { deny: ['db:read'] }, ['db:read'], /denies/],
    ['under a denied one', { deny: ['github'] }, ['github:acme/app'], /denies/],
    ['around a denied one', { deny: ['github:acme/vault'] }, ['github:acme/*'], /denies/],
    ['across a denied one', { deny: ['github:*:write'] }, ['github:acme/*'], /denies/],
    ['the policy itself holds a denied one', { deny: ['github:acme/vault'] }, undefined, /denies/],
  ])('waits: %s', (_, change, scopes, reason) => {
    const decision = decideAdmission([policy(change)], { name: 'ci-1', scopes })
    expect(decision).toMatchObject({
      decision: 'wait',
      policy: { name: 'ci' },
      reason: expect.stringMatching(reason),
    })
  })

  test('the first policy that matches decides, even when a later one would approve', () => {
    const first = policy({ name: 'first', autoApprove: false })
    const second = policy({ name: 'second', matches: () => true })
    expect(decideAdmission([first, second], { name: 'ci-1', scopes: undefined })).toMatchObject({
      policy: { name: 'first' },
    })
    expect(decideAdmission([first, second], { name: 'x', scopes: undefined })).toMatchObject({
      policy: { name: 'second' },
    })
  })

  test('no policy matches', () => {
    const decision = decideAdmission([policy()], { name: 'other', scopes: undefined })
    expect(decision).toEqual({ decision: 'wait', reason: expect.stringMatching(/No policy/) })
    expect(decideAdmission([], { name: 'ci-1', scopes: [] })).toMatchObject({ decision: 'wait' })
  })

  test('the lifetime comes along', () => {
    const bounded = decideAdmission([policy({ maxAgentLifetimeMs: 5 })], { name: 'ci-1', scopes: undefined })
    expect(bounded).toMatchObject({ decision: 'approve', lifetimeMs: 5 })
    const free = decideAdmission([policy()], { name: 'ci-1', scopes: undefined })
    expect(free).not.toHaveProperty('lifetimeMs')
  })

  test('an approval never gives admin, a denied scope, or more than the policy', () => {
    const segment = fc.constantFrom('a', 'ab', 'b', 'admin', '*', 'a*')
    const scope = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(':'))
    const list = fc.array(scope, { maxLength: 3 })
    fc.assert(
      fc.property(list, list, fc.option(list, { nil: undefined }), (scopes, deny, asked) => {
        const decision = decideAdmission([policy({ scopes, deny })], { name: 'ci-1', scopes: asked })
        if (decision.decision === 'wait') return
        expect(new Set(decision.scopes)).toEqual(new Set(asked ?? scopes))
        for (const given of decision.scopes) {
          expect(isAdminScope(given)).toBe(false)
          expect(coversAny(scopes, given)).toBe(true)
          expect(deny.some((denied) => overlaps(denied, given))).toBe(false)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

test('bounds for the caller to hold against facts', () => {
  const rate = { count: 10, perMs: 3_600_000 }
  expect(admissionBounds(policy({ maxAgents: 3, rate, maxAgentLifetimeMs: 9 }))).toEqual({
    maxAgents: 3,
    rate,

    maxAgentLifetimeMs: 9,
  })
  expect(admissionBounds(policy())).toEqual({})
})

describe('rates', () => {
  test.each([
    ['1/second', 1, 1_000],
    ['10/minute', 10, 60_000],
    ['10/hour', 10, 3_600_000],
    ['999999999/day', 999_999_999, 86_400_000],
  ])('%s', (text, count, perMs) => {
    expect(parseRate(text)).toEqual({ count, perMs })
  })
  test.each([
    '',
    '0/hour',
    '-1/hour',
    '10',
    '/hour',
    '10/',
    '10/week',
    '10/hours',
    '10 / hour',
    '1.5/hour',
    '1e3/hour',
    '010/hour',
    '10/Hour',
    '10/hour\n',
    '10/hour/day',
    '9999999999/day',
    'x/hour',
    '１/hour',
  ])('refuses %j', (text) => expect(parseRate(text)).toBeUndefined())
})

test('the tighter of two bounds wins, whichever comes first', () => {
  const slow = { count: 60, perMs: 3_600_000 }
  const fast = { count: 2, perMs: 1_000 }
  const one = { maxTtlMs: 5, maxActive: 9, issueRate: slow }
  const other = { maxTtlMs: 7, maxActive: 2, issueRate: fast }
  const both = { maxTtlMs: 5, maxActive: 2, issueRate: slow }
  expect([tightest(one, other), tightest(other, one)]).toEqual([both, both])
  expect([tightest(one, {}), tightest({}, one)]).toEqual([one, one])
})
