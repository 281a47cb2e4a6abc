import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cpuMsOf } from '../../../test/support/cpu-time.ts'
import { isLinearPattern } from './pattern.ts'

it.each([
  '^[A-Za-z0-9._:-]+$',
  '^https?://[^?#@\\\\\\s]+$',
  '^(\\*\\.)?[A-Za-z0-9._:/-]+\\*?$',
  '^[0-9a-f]{8}-[0-9a-f]{4}$',
  '^(disable|require)$',
  '^[a-z][a-z0-9-]{0,39}$',
  '^[^\\u0000\\s]+$',
  `^(?:${Array.from({ length: 60 }, (_, index) => `region-${index}`)
    .join('|')
    .slice(0, 480)})$`,
  '^(a|b|c)-(d|e)(-f)?$',
  '^arn:aws:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$',
  '^[a-z]{0,63}-[0-9a-f]{100}$',
  '^(?:[A-Za-z0-9._/-]+)$',
])('a pattern that takes time in proportion to the text: %s', (pattern) => {
  expect(isLinearPattern(pattern)).toBe(true)
})

it.each([
  '^(a+)+$',
  '^(a|a)*$',
  '^(a?){40}$',
  'a+$',
  '^a*a*$',
  '^(a)\\1$',
  '^(?=a)b$',
  '^(?<name>a)$',
  '^a{1,9}b{1,9}$',
  '^a?b?c?d?e?f?g?h?i?$',
  `^${'(a|a)'.repeat(11)}b$`,
  `^${'(a?|b)'.repeat(6)}$`,
  '^a|b$',
  '^[$',
  '^(a$',
  '^a++$',
  `^${'a'.repeat(600)}$`,
  '^[ab]*[ab]{9999}c$',
  '^[ab]*[ab]{128}c$',
  '^(a|a)(a|a)(a|a)[ab]+[ab]{16}c$',
  '^[ab]{1,9999}[ab]{200}c$',
  '^[ab]{9999}$',
])('another one: %s', (pattern) => {
  expect(isLinearPattern(pattern)).toBe(false)
})

const TEXT_BYTES = 65_536
/** What makes patterns of such parts look at most of it again and again. */
const TEXTS = ['a', 'ab', 'aab'].flatMap((part) =>
  ['', 'c', '!'].map((end) => part.repeat(TEXT_BYTES / part.length) + end),
)
const PIECE = fc.constantFrom(
  ...[
    'a',
    '[ab]',
    '.',
    '[^c]',
    '(a|a)',
    '(?:a|ab)',
    '(ab?)',
    'a?',
    '[ab]*',
    '.+',
    '[ab]{0,99}',
    '[ab]{1,9999}',
    '[ab]{99}',
    '[ab]{30}',
    'c',
  ],
)

/** On a slow machine. One that is not linear takes minutes. */
const MOST_MS = 400

it('accepts no pattern that takes long for the largest text', async () => {
  let accepted = 0
  const property = fc.asyncProperty(
    fc.array(PIECE, { maxLength: 12 }),
    fc.constantFrom('c$', '$', ''),
    async (pieces, end) => {
      const pattern = `^${pieces.join('')}${end}`
      if (!isLinearPattern(pattern)) return
      accepted += 1
      const expression = new RegExp(pattern, 'u')
      for (const text of TEXTS) {
        let least = Number.POSITIVE_INFINITY
        // The first time compiles it, and a collection may fall into any.
        for (let tries = 0; tries < 3 && least > MOST_MS; tries += 1)
          least = Math.min(least, await cpuMsOf(() => expression.test(text)))
        expect(least, pattern).toBeLessThan(MOST_MS)
      }
    },
  )
  await fc.assert(property, { numRuns: 300 })
  expect(accepted).toBeGreaterThan(30)
})
