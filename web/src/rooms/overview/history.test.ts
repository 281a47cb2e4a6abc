import { expect, test } from 'vitest'
import type { Activity } from '../../../../src/client/wire.ts'
import { areaOf, historyOf, sentenceOf } from './history.ts'

const at = (minutes: number) => new Date(Date.parse('2026-11-26T12:00:00Z') + minutes * 60_000).toISOString()
const series = (action: string, ...points: [number, number][]) =>
  ({
    backend: 'orders',
    action,
    points: points.map(([minutes, count]) => ({ at: at(minutes), count })),
  }) as Activity['series'][number]
const activity: Activity = {
  since: at(0),
  until: at(60),
  step_seconds: 900,
  counted_until: at(60),
  series: [
    series('credential.issued', [15, 5], [45, 2]),
    series('credential.revoked', [30, 1]),
    series('credential.expired', [30, 1], [45, 1]),
    series('credential.settled', [30, 99]),
  ],
}

test('how many were alive is how many are, without what has happened since', () => {
  expect(historyOf(10, activity)).toEqual([
    { at: at(0), count: 6 },
    { at: at(15), count: 6 },
    { at: at(30), count: 11 },
    { at: at(45), count: 9 },
  ])
})

test('never fewer than none, even where entries are not counted yet', () => {
  expect(historyOf(0, activity).map(({ count }) => count)).toEqual([0, 0, 1, 0])
})

test('a chart needs two counts', () => {
  expect(areaOf([])).toBeUndefined()
  expect(areaOf([3])).toBeUndefined()
  expect(areaOf([0, 5, 10])).toEqual({
    line: 'M0 98L500 50L1000 2',
    area: 'M0 98L500 50L1000 2L1000 100L0 100Z',
  })
  expect(areaOf([0, 0])?.line).toBe('M0 98L1000 98')
})

test('the chart is a sentence, too', () => {
  expect(sentenceOf('Live credentials', historyOf(10, activity), 10)).toBe(
    'Live credentials: 6 a day ago, 10 now, at most 11 in between.',
  )
  expect(sentenceOf('Live credentials', [], 3)).toBe('Live credentials: 3 now.')
})
