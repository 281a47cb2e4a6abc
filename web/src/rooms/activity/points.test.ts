import { expect, test } from 'vitest'
import type { Activity } from '../../../../src/client/wire.ts'
import { pointsOf, rangeOf, sentenceOf } from './points.ts'

const at = (minutes: number) => new Date(Date.parse('2026-11-26T12:00:00Z') + minutes * 60_000).toISOString()
const activity: Activity = {
  since: at(0),
  until: at(20),
  step_seconds: 300,
  counted_until: at(15),
  series: [
    {
      backend: null,
      action: 'credential.issued',
      points: [
        { at: at(0), count: 2 },
        { at: at(10), count: 7 },
      ],
    },
    { backend: null, action: 'credential.revoked', points: [{ at: at(5), count: 1 }] },
    { backend: null, action: 'credential.expired', points: [{ at: at(5), count: 3 }] },
    { backend: null, action: 'auth.failed', points: [{ at: at(15), count: 4 }] },
    { backend: null, action: 'agent.created', points: [{ at: at(0), count: 99 }] },
  ],
}

test('counts are lines: nothing is 0, and what is not counted yet is no number', () => {
  const { times, lines } = pointsOf(activity)
  expect(times.map((time) => new Date(time * 1_000).toISOString())).toEqual([at(0), at(5), at(10), at(15)])
  expect(lines.map(({ key, counts, total }) => [key, counts, total])).toEqual([
    ['issued', [2, 0, 7, null], 9],
    ['ended', [0, 4, 0, null], 4],
    // Counted already, although not all of that time is.
    ['denied', [0, 0, 0, 4], 4],
  ])
})

test('one action is one line, under its own words', () => {
  const { lines } = pointsOf(activity, 'agent.created')
  expect(lines.map(({ label, total }) => [label, total])).toEqual([['agent created', 99]])
})

test('the chart is a sentence, too', () => {
  expect(sentenceOf(pointsOf(activity))).toBe(
    'From 2026-11-26 12:00:00 UTC to 2026-11-26 12:20:00 UTC: 9 issued, 4 ended, 4 denied or failed. Most issued in 5m from 2026-11-26 12:10:00 UTC: 7.',
  )
  expect(sentenceOf(pointsOf({ ...activity, series: [] }))).toMatch(
    /: 0 issued, 0 ended, 0 denied or failed\.$/,
  )
  expect(sentenceOf({ times: [], stepSeconds: 60, lines: [] })).toBe('Nothing is counted.')
})

test('a brush is whole steps, in either direction, and never empty', () => {
  const base = Date.parse(at(0)) / 1_000
  const later = base + 86_400
  const range = { since: '2026-11-26T12:00:00Z', until: '2026-11-26T12:10:00Z' }
  expect(rangeOf([base + 10, base + 301], 300, later)).toEqual(range)
  expect(rangeOf([base + 301, base + 10], 300, later)).toEqual(range)
  expect(rangeOf([base, base], 300, later)).toEqual({ ...range, until: '2026-11-26T12:05:00Z' })
})

test('a brush that reaches to now has no end', () => {
  const base = Date.parse(at(0)) / 1_000
  expect(rangeOf([base, base + 301], 300, base + 320)).toEqual({
    since: '2026-11-26T12:00:00Z',
    until: undefined,
  })
})
