import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { MAX_ACTIVITY_POINTS, SPANS, spanOf, usualStep } from './activity.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from './limits.ts'

test.each([
  [1, MINUTE_MS],
  [2 * HOUR_MS, MINUTE_MS],
  [2 * HOUR_MS + 1, 2 * MINUTE_MS],
  [DAY_MS, 15 * MINUTE_MS],
  [7 * DAY_MS, 2 * HOUR_MS],
  [60 * DAY_MS, 12 * HOUR_MS],
  [120 * DAY_MS, DAY_MS],
  [121 * DAY_MS, 2 * DAY_MS],
  [365 * DAY_MS, 4 * DAY_MS],
])('a time of %i ms has a step of %i', (length, step) => {
  expect(usualStep(length)).toBe(step)
})

describe('whatever the length', () => {
  it('the usual step makes at most 120 points, and is made up of a span', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 * 365 * DAY_MS }), (length) => {
        const step = usualStep(length)
        expect(length / step).toBeLessThanOrEqual(120)
        expect(step % spanOf(step)).toBe(0)
        // Few rows for each point.
        expect(step / spanOf(step)).toBeLessThanOrEqual(Math.max(12, step / DAY_MS))
      }),
    )
    expect(MAX_ACTIVITY_POINTS).toBeGreaterThan(120)
  })
})

test('each span divides the next', () => {
  for (const [n, span] of SPANS.slice(1).entries()) expect(span % (SPANS[n] ?? 0)).toBe(0)
  expect(
    [MINUTE_MS, 15 * MINUTE_MS, 45 * MINUTE_MS, 90 * MINUTE_MS, 2 * HOUR_MS, 3 * DAY_MS].map(spanOf),
  ).toEqual([MINUTE_MS, 15 * MINUTE_MS, 15 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, DAY_MS])
})
