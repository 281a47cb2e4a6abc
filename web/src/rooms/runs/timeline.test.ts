import { expect, test } from 'vitest'
import type { Token } from '../../../../src/client/wire.ts'
import { barOf, endOf, spanOf, ticksOf } from './timeline.ts'

const T = Date.parse('2026-11-27T12:00:00Z')
const iso = (seconds: number) => new Date(T + seconds * 1_000).toISOString()

test('the axis ends with the run, or now', () => {
  expect(spanOf({ started_at: iso(0), ended_at: iso(40) }, T + 90_000)).toEqual({ from: T, to: T + 40_000 })
  expect(spanOf({ started_at: iso(0), ended_at: null }, T + 90_000)).toEqual({ from: T, to: T + 90_000 })
  // The clock of the browser is behind.
  expect(spanOf({ started_at: iso(0), ended_at: null }, T - 5_000)).toEqual({ from: T, to: T + 1_000 })
})

const span = { from: T, to: T + 100_000 }
test.each([
  ['from its issue to its end', [20, 60], { left: 0.2, width: 0.4, isOpen: false }],
  ['open, while it lives', [20, null], { left: 0.2, width: 0.8, isOpen: true }],
  ['open, when it ended after what is shown', [20, 130], { left: 0.2, width: 0.8, isOpen: true }],
  ['at the beginning, when it came before', [-10, 50], { left: 0, width: 0.5, isOpen: false }],
  ['without a width at the very end', [100, null], { left: 1, width: 0, isOpen: true }],
  ['without a width after the end', [150, 160], { left: 1, width: 0, isOpen: true }],
] as const)('a bar goes %s', (_, [from, to], bar) => {
  const found = barOf(T + from * 1_000, to === null ? null : T + to * 1_000, span)
  expect(found.isOpen).toBe(bar.isOpen)
  expect(found.left).toBeCloseTo(bar.left)
  expect(found.width).toBeCloseTo(bar.width)
})

test('a credential ends when it was ended, or else by its expiry', () => {
  const token = { status: 'active', expires_at: iso(60) } as Token
  expect(endOf(token)).toBeNull()
  expect(endOf({ ...token, status: 'revoked', ended_at: iso(30) } as Token)).toBe(T + 30_000)
  expect(endOf({ ...token, status: 'expired' } as Token)).toBe(T + 60_000)
})

test.each([
  [1, []],
  [9, ['2s', '4s', '6s']],
  [90, ['20s', '40s', '1m']],
  [3_000, ['20m', '40m']],
  [86_400, ['8h', '16h']],
  [400 * 86_400, ['100d', '200d', '300d']],
] as const)(
  'the axis of %i seconds has few round lines, and none in the way of its end',
  (seconds, labels) => {
    expect(ticksOf({ from: T, to: T + seconds * 1_000 }).map(({ label }) => label)).toEqual(labels)
  },
)
