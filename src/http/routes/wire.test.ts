import fc from 'fast-check'
import { expect, test } from 'vitest'
import { timestamp } from './wire.ts'

const LAST_MS = 8_640_000_000_000_000

test('writes every time as toISOString does', () => {
  const time = fc.oneof(
    fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2026, 0, 4) }),
    fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) }),
    fc.integer({ min: -LAST_MS, max: LAST_MS }),
    fc.constantFrom(0, -1, -86_400_000, LAST_MS, -LAST_MS, Date.UTC(9999, 11, 31, 23, 59, 59, 999) + 1),
  )
  fc.assert(
    fc.property(time, (ms) => {
      expect(timestamp(ms)).toBe(new Date(ms).toISOString())
    }),
    { numRuns: 2_000 },
  )
})

test.each([Number.NaN, Number.POSITIVE_INFINITY, LAST_MS + 86_400_000])(
  'throws for %d, which is no time',
  (ms) => {
    expect(() => timestamp(ms)).toThrow(RangeError)
  },
)

test('writes every day of 400 years, after which leap years repeat, as toISOString does', () => {
  const wrong: string[] = []
  for (let ms = 0; ms < Date.UTC(2370, 0); ms += 86_400_000) {
    const day = new Date(ms).toISOString()
    if (timestamp(ms) !== day) wrong.push(day)
  }
  expect(wrong).toEqual([])
})
