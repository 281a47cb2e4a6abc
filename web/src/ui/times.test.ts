import { expect, test } from 'vitest'
import { duration, exact, relative } from './times.ts'

test('durations have at most two units', () => {
  expect([0, 1, 90, 3_600, 3_661, 90_000, 31_536_000].map(duration)).toEqual([
    '0s',
    '1s',
    '1m 30s',
    '1h',
    '1h 1m',
    '1d 1h',
    '1y',
  ])
})

test('times are relative to now', () => {
  const now = Date.parse('2026-11-26T12:00:00Z')
  expect([-4_000, -65_000, 7_200_000].map((ms) => relative(now + ms, now))).toEqual([
    'now',
    '1m ago',
    'in 2h',
  ])
  expect(exact(now)).toBe('2026-11-26 12:00:00 UTC')
})
