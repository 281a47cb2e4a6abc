import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, LONGEST_MS, parseDuration, requireDuration } from './duration.ts'

test.each([
  ['1ms', 1],
  ['45s', 45_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
  ['1h30m', 5_400_000],
  ['90m', 5_400_000],
  ['7d', 604_800_000],
  ['1w', 604_800_000],
  ['1w1d1h1m1s1ms', 604_800_000 + 86_400_000 + 3_661_001],
  ['1m5ms', 60_005],
  ['0h5m', 300_000],
  // As Go prints a duration.
  ['10m0s', 600_000],
  ['1h0m0s', 3_600_000],
  ['24h0m0s', 86_400_000],
  ['007s', 7_000],
  [`${'9'.repeat(200)}w`, LONGEST_MS],
  ['99999999999999999999h', LONGEST_MS],
])('%s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(
  [
    [
      '',
      '0',
      '5',
      '0s',
      '0h0m',
      '0h0m0s',
      '-5m',
      '+5m',
      '1.5h',
      '1,5h',
      '1e3s',
      ' 5m',
      '5m ',
      '5 m',
      '1h 30m',
      'h',
      'm5',
      '5M',
      '5H',
    ],
    [
      '30m1h',
      '1h1h',
      '1m1m',
      '5min',
      '5sec',
      '1y',
      '5µs',
      '５m',
      '0x10s',
      'Infinity',
      'NaN',
      '1h\n',
      '5m\0',
      'P1D',
      'PT5M',
    ],
    ['null', '1_000s', '1s1m', '1ms1s', '9'.repeat(300), `${'1'.repeat(256)}s`],
  ].flat(),
)('refuses %j', (text) => {
  expect(parseDuration(text)).toBeUndefined()
  expect(() => requireDuration(text, 'ttl')).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/^"ttl" is not/) }),
  )
})

describe('format', () => {
  test.each([
    [1, '1ms'],
    [45_000, '45s'],
    [600_000, '10m'],
    [3_600_000, '1h'],
    [5_400_000, '1h30m'],
    [90_061_001, '25h1m1s1ms'],
    [LONGEST_MS, '8760000h'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
  test.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('%d is no duration', (ms) => {
    expect(() => formatDuration(ms)).toThrow(RangeError)
  })
})

test('parse ∘ format is the identity', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: LONGEST_MS }), (ms) => parseDuration(formatDuration(ms)) === ms),
  )
})

test('any text is either refused or a whole, positive, bounded number', () => {
  const text = fc.oneof(
    fc.string(),
    fc
      .array(fc.constantFrom('1', '0', '9', 'w', 'd', 'h', 'm', 's', 'ms', '-', '.', ' '))
      .map((a) => a.join('')),
  )
  fc.assert(
    fc.property(text, (given) => {
      const ms = parseDuration(given)
      return ms === undefined || (Number.isSafeInteger(ms) && ms > 0 && ms <= LONGEST_MS)
    }),
    { numRuns: 2_000 },
  )
})
