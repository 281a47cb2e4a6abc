import fc from 'fast-check'
import { expect, test } from 'vitest'
import { timestamp } from './wire.ts'

const LAST_MS = 8_640_000_000_000_000

test('a timestamp is what toISOString writes, whatever came before', () => {
  const time = fc.oneof(
    fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2026, 0, 4) }),
    fc.integer({ min: -LAST_MS, max: LAST_MS }),
    fc.constantFrom(0, -1, -86_400_000, LAST_MS, -LAST_MS, Date.UTC(9999, 11, 31, 23, 59, 59, 999) + 1),
  )
  fc.assert(
    fc.property(fc.array(time, { minLength: 2, maxLength: 5 }), (times) => {
      for (const ms of times) expect(timestamp(ms)).toBe(new Date(ms).toISOString())
    }),
    { numRuns: 500 },
  )
})

test.each([Number.NaN, Number.POSITIVE_INFINITY, LAST_MS + 86_400_000])('%d is no time', (ms) => {
  expect(() => timestamp(ms)).toThrow(RangeError)
})
