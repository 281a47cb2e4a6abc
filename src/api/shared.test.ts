import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requireName } from '../domain/agent.ts'
import { LONGEST_MS, parseDuration } from '../domain/duration.ts'
import { isScope } from '../domain/scope.ts'
import { DURATION_PATTERN, NAME_PATTERN, SCOPE_PATTERN } from './shared.ts'

const isName = (text: string) => {
  try {
    requireName(text)
    return true
  } catch {
    return false
  }
}
const RESERVED = /^(?:admin|openid|local|system|mayfly)$/i
const likely = fc.string({
  unit: fc.constantFrom(...'aZ09._-/@+:* \n0123456789wdhmsé'.split('')),
  maxLength: 20,
})

describe.each([
  [
    'duration',
    DURATION_PATTERN,
    (text: string) => parseDuration(text) !== undefined,
    (text: string) => text.length < 2 || text.length > 256 || /^[0\D]*$/.test(text),
  ],
  ['scope', SCOPE_PATTERN, isScope, (text: string) => text.length > 256],
  ['name', NAME_PATTERN, isName, (text: string) => RESERVED.test(text)],
] as const)('the pattern of a %s', (_, pattern, accepts, exempt) => {
  const form = new RegExp(pattern)

  test('matches all that the server accepts', () => {
    fc.assert(
      fc.property(fc.oneof(likely, fc.string()), (text) => !accepts(text) || form.test(text)),
      { numRuns: 3_000 },
    )
  })

  test('matches nothing else, but for what the document says in words', () => {
    fc.assert(
      fc.property(fc.stringMatching(form), (text) => accepts(text) || exempt(text)),
      { numRuns: 1_000 },
    )
  })
})

test('a duration is never longer than the longest, whatever its digits', () => {
  expect(parseDuration(`${'9'.repeat(200)}w`)).toBe(LONGEST_MS)
})
