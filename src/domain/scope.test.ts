import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cpuMsOf } from '../../test/support/cpu-time.ts'
import { scope, segment } from '../../test/support/scopes.ts'
import {
  covers,
  coversAny,
  heldUntil,
  intersectScopes,
  isAdminScope,
  isScope,
  MAX_SCOPE_LENGTH,
  MAX_SCOPES,
  overlaps,
  requireScopes,
} from './scope.ts'

describe('grammar', () => {
  test.each(['a', '*', 'a:*', 'a*:b', 'github:acme/app:read', 'a.b_c/d@e+f-g', 'x'.repeat(256), '*:*'])(
    '%j',
    (text) => {
      expect(isScope(text)).toBe(true)
    },
  )
  test.each(
    [
      [
        '',
        ':',
        'a:',
        ':a',
        'a::b',
        'a b',
        ' a',
        'a ',
        'a\n',
        'a\0',
        'a*b',
        '**',
        'a**',
        'a,b',
        'a;b',
        'ä',
        'a"',
        "a'",
      ],
      [
        'a\\',
        'a?',
        'a[b]',
        'a{b}',
        '%00',
        'a\u2028',
        '\u0430dmin',
        'x'.repeat(257),
        '*a',
        'a:*:',
        'a|b',
        '<a>',
        'a=b',
      ],
    ].flat(),
  )('refuses %j', (text) => {
    expect(isScope(text)).toBe(false)
    expect(() => requireScopes([text])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
  test('no refusal repeats what was sent', () => {
    expect(() => requireScopes(['<script>'])).toThrow(/^"scopes" contains/)
  })
  test('number and length', () => {
    expect(() => requireScopes(Array(MAX_SCOPES).fill('a'))).not.toThrow()
    expect(() => requireScopes(Array(MAX_SCOPES + 1).fill('a'), 'scope')).toThrow(/"scope"/)
    expect(isScope('x'.repeat(MAX_SCOPE_LENGTH))).toBe(true)
  })
  test('a long hostile text is refused at once', async () => {
    const spent = await cpuMsOf(() => {
      expect(isScope(`${'a:'.repeat(5_000_000)}!`)).toBe(false)
      expect(isScope(`${'a'.repeat(255)}!`)).toBe(false)
    })
    expect(spent).toBeLessThan(200)
  })
})

describe('covers', () => {
  test.each([
    ['github', 'github', true],
    ['github', 'github:o/r', true],
    ['github:*', 'github:o/r', true],
    ['github:*', 'github', false],
    ['github', 'github:*', true],
    ['github:o/r', 'github:o/r:read', true],
    ['github:o/r:read', 'github:o/r', false],
    ['github:o/*', 'github:o/r:read', true],
    ['github:o/*', 'github:p/r', false],
    ['github:*:read', 'github:o/r:read', true],
    ['github:*:read', 'github:o/r:write', false],
    ['git', 'github', false],
    ['git*', 'github:x', true],
    ['github:o/r', 'github:o/r2', false],
    ['*', 'github:o/r', true],
    ['*', '*', true],
    ['*', 'admin', false],
    ['*', 'admin:agents:read', false],
    ['*:*', 'admin:agents', false],
    ['a*', 'admin:agents:read', false],
    ['adm*', 'admin', false],
    ['admin*', 'admin', false],
    ['admin', 'admin:agents:read', true],
    ['admin:*', 'admin:agents:read', true],
    ['admin:*', 'admin', false],
    ['admin:agents:*', 'admin:agents:write', true],
    ['admin:agents:*', 'admin:backends:write', false],
    ['admin:agents:read', 'admin:agents:write', false],
    ['ADMIN', 'admin', false],
    ['a:b', 'a:b*', false],
    ['a:b*', 'a:b*', true],
    ['a:b*', 'a:bc*', true],
    ['a:bc*', 'a:b*', false],
  ])('%s ⊇ %s: %s', (pattern, wanted, expected) => {
    expect(covers(pattern, wanted)).toBe(expected)
  })

  test('reflexive', () => {
    fc.assert(fc.property(scope, (a) => covers(a, a)))
  })
  test('transitive', () => {
    fc.assert(
      fc.property(scope, scope, scope, (a, b, c) => {
        fc.pre(covers(a, b) && covers(b, c))
        return covers(a, c)
      }),
      { numRuns: 500, maxSkipsPerRun: 1_000 },
    )
  })
  test('monotone: a longer scope under a covered one is covered', () => {
    fc.assert(fc.property(scope, scope, segment, (a, b, more) => !covers(a, b) || covers(a, `${b}:${more}`)))
  })
  test('antisymmetric: two scopes that cover each other are the same', () => {
    fc.assert(fc.property(scope, scope, (a, b) => !(covers(a, b) && covers(b, a)) || a === b))
  })
  test('only what begins with admin covers admin', () => {
    fc.assert(
      fc.property(scope, fc.array(segment, { maxLength: 2 }), (a, rest) => {
        return !covers(a, ['admin', ...rest].join(':')) || isAdminScope(a)
      }),
    )
  })
})

describe('intersection', () => {
  test('grants exactly what both lists grant', () => {
    const list = fc.array(scope, { maxLength: 4 })
    fc.assert(
      fc.property(list, list, scope, (left, right, wanted) => {
        const both = coversAny(left, wanted) && coversAny(right, wanted)
        expect(coversAny(intersectScopes(left, right), wanted)).toBe(both)
      }),
      { numRuns: 2_000 },
    )
  })
  test.each([
    [['a:b*'], ['a:*:read'], ['a:b*:read']],
    [['a', 'a:b'], ['a:b'], ['a:b']],
    [['*'], ['admin:*'], []],
    [['*'], ['x:y', '*'], ['x:y', '*']],
    [[], ['a'], []],
    [['a:b'], ['a:c'], []],
  ])('%j ∩ %j = %j', (left, right, expected) => {
    expect(intersectScopes(left, right)).toEqual(expected)
  })
  test('overlaps is what some scope under both shows, either way round', () => {
    expect(overlaps('a:*', 'a:b')).toBe(true)
    expect(overlaps('a:b*', 'a:*:write')).toBe(true)
    expect(overlaps('a:b', 'a:c')).toBe(false)
    expect(overlaps('*', 'admin')).toBe(false)
    fc.assert(fc.property(scope, scope, (a, b) => overlaps(a, b) === overlaps(b, a)))
    fc.assert(
      fc.property(scope, scope, scope, (a, b, c) => !(covers(a, c) && covers(b, c)) || overlaps(a, b)),
    )
  })
})

describe('until when scopes are held', () => {
  const good = { scopes: ['a', 'b:read'], until: Number.POSITIVE_INFINITY }
  const soon = { scopes: ['b', 'c:*'], until: 10 }
  const later = { scopes: ['c:x'], until: 20 }
  test.each([
    [[], ['a'], Number.POSITIVE_INFINITY],
    [[good, soon, later], [], Number.POSITIVE_INFINITY],
    [[good, soon, later], ['a:x', 'b:read:y'], Number.POSITIVE_INFINITY],
    [[good, soon, later], ['a', 'b:write'], 10],
    [[good, soon, later], ['c:x'], 20],
    [[good, soon, later], ['c:x', 'c:y'], 10],
    [[good, soon, later], ['d'], Number.NEGATIVE_INFINITY],
  ])('by %j of %j', (parts, wanted, until) => {
    expect(heldUntil(parts, wanted)).toBe(until)
  })
})
