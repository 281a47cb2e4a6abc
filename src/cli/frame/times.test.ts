import { describe, expect, test } from 'vitest'
import { relative } from './times.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const at = (ms: number) => new Date(NOW + ms).toISOString()

describe('a time in words', () => {
  test.each([
    [0, '1 s ago'],
    [400, 'in 1 s'],
    [-42_000, '42 s ago'],
    [89_400, 'in 89 s'],
    [90_000, 'in 2 min'],
    [9 * 60_000, 'in 9 min'],
    [10 * 60_000 - 300, 'in 10 min'],
    [89 * 60_000, 'in 89 min'],
    [3 * 3_600_000, 'in 3 h'],
    [-35 * 3_600_000, '35 h ago'],
    [36 * 3_600_000, 'in 2 days'],
    [30 * 86_400_000 - 5_000, 'in 30 days'],
    [-730 * 86_400_000, '730 days ago'],
  ])('%d ms from now: %s', (ms, words) => {
    expect(relative(at(ms), NOW)).toBe(words)
  })

  test('text that is no time stays as it is', () => {
    expect(relative('soon', NOW)).toBe('soon')
  })
})
