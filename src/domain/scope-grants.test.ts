import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scope } from '../../test/support/scopes.ts'
import {
  absoluteScope,
  canGive,
  coversAny,
  coversGranted,
  decideGrant,
  readScope,
  relativeScope,
} from './scope.ts'

describe('the scopes that a request is granted', () => {
  test.each<[string, string[], string[] | undefined, string[] | undefined, unknown]>([
    ['all held here', ['github:o/*', 'db:x'], undefined, undefined, { granted: ['o/*'] }],
    ['the whole backend', ['github'], undefined, undefined, { granted: ['*'] }],
    ['everything', ['*'], undefined, undefined, { granted: ['*'] }],
    ['cut to the allowed', ['github:o/*'], ['o/r', 'p/q'], undefined, { granted: ['o/r'] }],
    ['cut across', ['github:o/*'], ['*:read'], undefined, { granted: ['o/*:read'] }],
    ['nothing allowed in common', ['github:o/r'], ['p/*'], undefined, { refused: 'backend' }],
    ['nothing here', ['db:x'], undefined, undefined, { refused: 'no_scope_here' }],
    ['nothing here, nothing asked for', ['db:x'], undefined, [], { refused: 'no_scope_here' }],
    ['no scopes at all', [], undefined, undefined, { refused: 'no_scope_here' }],
    ['an empty list', ['github'], undefined, [], { granted: [] }],
    ['relative, as asked', ['github:o/*'], undefined, ['o/r:read'], { granted: ['o/r:read'] }],
    ['absolute, as asked', ['github:o/*'], undefined, ['github:o/r'], { granted: ['github:o/r'] }],
    ['wider than held', ['github:o/r'], undefined, ['o/*'], { refused: 'agent', scope: 'o/*' }],
    ['another backend', ['github:o/*', 'db:x'], undefined, ['db:x'], { refused: 'agent', scope: 'db:x' }],
    ['not allowed by the backend', ['github'], ['o/*'], ['p/q'], { refused: 'backend', scope: 'p/q' }],
    ['one of two is wrong', ['github:o/*'], undefined, ['o/r', 'p/q'], { refused: 'agent', scope: 'p/q' }],
    ['admin holders hold nothing here', ['admin:*'], undefined, undefined, { refused: 'no_scope_here' }],
    [
      'a resource called as the backend',
      ['github:github:read'],
      undefined,
      undefined,
      { granted: ['github:github:read'] },
    ],
    ['the backend itself', ['github'], undefined, ['github'], { granted: ['github'] }],
    [
      'the backend itself, where it is cut',
      ['github'],
      ['o/*'],
      ['github'],
      { refused: 'backend', scope: 'github' },
    ],
  ])('%s', (_, held, allowed, asked, expected) => {
    expect(decideGrant({ name: 'github', allowed }, held, asked)).toMatchObject(expected as object)
  })

  test('never more than the agent holds and the backend allows', () => {
    const list = fc.array(scope, { maxLength: 4 })
    fc.assert(
      fc.property(
        list,
        fc.option(list, { nil: undefined }),
        fc.option(list, { nil: undefined }),
        (held, allowed, asked) => {
          const decision = decideGrant({ name: 'ab', allowed }, held, asked)
          if (!('granted' in decision)) return
          for (const granted of decision.granted) {
            const absolute = absoluteScope('ab', granted)
            expect(coversAny(held, absolute)).toBe(true)
            const relative = absolute === 'ab' ? '*' : absolute.slice('ab:'.length)
            if (allowed !== undefined) expect(coversAny(allowed, relative)).toBe(true)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

describe('what a backend cannot give', () => {
  const gives = (scope: string) => !scope.endsWith(':write')
  test.each<[string, string[], string[] | undefined, unknown]>([
    ['is left out', ['db:a:read', 'db:a:write'], undefined, { granted: ['a:read'], leftOut: ['db:a:write'] }],
    ['is left out where it is not allowed', ['db:a', 'db:b'], ['a'], { granted: ['a'], leftOut: ['db:b'] }],
    [
      'is not what it gives a part of',
      ['db:a', 'x'],
      ['a:read', 'a:write'],
      { granted: ['a:read'], leftOut: [] },
    ],
    ['is refused if it is all', ['db:a:write'], undefined, { refused: 'never_given' }],
    ['is refused if nothing is allowed', ['db:b'], ['a'], { refused: 'backend' }],
  ])('%s', (_, held, allowed, expected) => {
    expect(decideGrant({ name: 'db', allowed, gives }, held, undefined)).toEqual(expected)
  })

  test('is what no request without scopes gets, and nothing else is', () => {
    const list = fc.array(scope, { maxLength: 4 })
    fc.assert(
      fc.property(list, fc.option(list, { nil: undefined }), list, (held, allowed, never) => {
        const backend = { name: 'ab', allowed, gives: (one: string) => !never.includes(one) }
        const decision = decideGrant(backend, held, undefined)
        if (!('granted' in decision)) return
        for (const granted of decision.granted) {
          const absolute = absoluteScope('ab', granted)
          expect(never).not.toContain(absolute === 'ab' ? '*' : absolute.slice('ab:'.length))
        }
        for (const one of held) {
          const isLeftOut = decision.leftOut.includes(one)
          expect(isLeftOut).toBe(relativeScope('ab', one) !== undefined && !canGive(backend, one))
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a resource with the name of its backend', () => {
  /** A backend `shop` with the databases `shop` and `orders`, read only. */
  const gives = (scope: string) => /^(?:shop|orders|\*)(?::(?:read|\*))?$/.test(scope)
  const shop = { name: 'shop', gives }
  test.each<[string, string[], string, string]>([
    ['a database, relative', ['shop:shop'], 'shop:read', 'shop:shop:read'],
    ['the same for the holder of the backend', ['shop'], 'shop:read', 'shop:shop:read'],
    ['the same for the holder of everything', ['*'], 'shop:read', 'shop:shop:read'],
    ['the name alone', ['shop:shop'], 'shop', 'shop:shop'],
    ['the absolute form', ['shop:shop'], 'shop:shop', 'shop:shop'],
    ['the absolute form with a permission', ['shop'], 'shop:shop:read', 'shop:shop:read'],
    ['another database, relative', ['shop'], 'orders:read', 'shop:orders:read'],
    ['another database, absolute', ['shop'], 'shop:orders', 'shop:orders'],
    ['another database, absolute with a permission', ['shop:orders'], 'shop:orders:read', 'shop:orders:read'],
    ['what is not held as relative', ['shop:orders'], 'shop:orders', 'shop:orders'],
  ])('%s', (_, held, asked, meaning) => {
    expect(readScope(shop, held, asked)).toBe(meaning)
  })

  test('is known by the scopes of the agent or of the backend where the kind cannot tell', () => {
    const unknown = { name: 'shop' }
    expect(readScope(unknown, ['shop:shop:read'], 'shop:read')).toBe('shop:shop:read')
    expect(readScope(unknown, ['shop'], 'shop:read')).toBe('shop:read')
    expect(readScope({ ...unknown, allowed: ['shop:*'] }, ['shop'], 'shop:read')).toBe('shop:shop:read')
    expect(readScope({ ...unknown, allowed: ['read'] }, ['shop:shop'], 'shop:read')).toBe('shop:read')
  })

  test('is granted in the absolute form, which reads the same for ever', () => {
    expect(decideGrant(shop, ['shop'], ['shop:read', 'shop:orders'])).toEqual({
      granted: ['shop:shop:read', 'shop:orders'],
      leftOut: [],
    })
  })

  const names = fc.constantFrom('shop', 'orders', 'read', '*', 'sh*')
  const scopes = fc.array(names, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(':'))
  const backends = fc.record({
    name: fc.constant('shop'),
    allowed: fc.option(fc.array(scopes, { maxLength: 3 }), { nil: undefined }),
    gives: fc.constantFrom(
      gives,
      () => undefined,
      () => true,
      () => false,
    ),
  })
  const held = fc.array(scopes, { maxLength: 3 })

  test('never gets a request more than its two readings, nor more than is held', () => {
    fc.assert(
      fc.property(backends, held, scopes, (backend, holds, asked) => {
        const meaning = readScope(backend, holds, asked)
        expect([absoluteScope('shop', asked), `shop:${asked}`]).toContain(meaning)
        // The relative reading is chosen only where it is granted.
        if (meaning !== absoluteScope('shop', asked)) expect(coversAny(holds, meaning)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('is always reached by its absolute form, and another resource by its relative one', () => {
    fc.assert(
      fc.property(backends, held, scopes, (backend, holds, rest) => {
        expect(readScope(backend, holds, `shop:shop:${rest}`)).toBe(`shop:shop:${rest}`)
        fc.pre(rest !== 'shop' && !rest.startsWith('shop:'))
        expect(readScope(backend, holds, rest)).toBe(`shop:${rest}`)
      }),
    )
  })

  test('leaves what was granted readable: the record means what was granted', () => {
    fc.assert(
      fc.property(backends, held, fc.array(scopes, { maxLength: 3 }), (backend, holds, asked) => {
        const decision = decideGrant(backend, holds, asked)
        if (!('granted' in decision)) return
        const meant = asked.map((one) => readScope(backend, holds, one))
        expect(decision.granted.map((one) => absoluteScope('shop', one))).toEqual(meant)
        expect(coversGranted('shop', holds, decision.granted)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
