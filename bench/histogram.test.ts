import { describe, expect, it } from 'vitest'
import { createHistogram, median, quantileOf } from './histogram.ts'

describe('the histogram', () => {
  it('has no quantile without samples', () => {
    expect(createHistogram().quantile(0.5)).toBeNaN()
  })

  it('is exact below 1024 µs', () => {
    const histogram = createHistogram()
    for (let us = 1; us <= 1_000; us += 1) histogram.record(us)
    expect(histogram.count()).toBe(1_000)
    expect(histogram.quantile(0.5)).toBe(0.5)
    expect(histogram.quantile(0.99)).toBe(0.99)
    expect(histogram.quantile(1)).toBe(1)
  })

  it('is within half a percent above, up to an hour', () => {
    for (const us of [1_024, 1_500, 9_999, 123_456, 10_000_000, 3_600_000_000]) {
      const histogram = createHistogram()
      histogram.record(us)
      expect(Math.abs(histogram.quantile(0.5) / (us / 1_000) - 1)).toBeLessThan(0.005)
    }
  })

  it('agrees with sorted samples', () => {
    const histogram = createHistogram()
    const samples = Array.from({ length: 5_000 }, (_, n) => ((n * 7_919) % 5_000) ** 2 / 10)
    for (const us of samples) histogram.record(us)
    for (const share of [0.01, 0.5, 0.95, 0.99, 1]) {
      const exact = quantileOf(samples, share) / 1_000
      expect(Math.abs(histogram.quantile(share) - exact)).toBeLessThan(0.002 + exact * 0.005)
    }
  })

  it('puts what is out of range at the edges', () => {
    const histogram = createHistogram()
    for (const us of [-1, Number.MAX_SAFE_INTEGER]) histogram.record(us)
    expect(histogram.quantile(0.5)).toBe(0)
    expect(histogram.quantile(1)).toBeGreaterThan(3_600_000)
  })

  it('takes in the counts of another, and forgets', () => {
    const [one, other] = [createHistogram(), createHistogram()]
    one.record(10)
    other.record(30)
    other.record(2_000)
    one.add(other.counts())
    expect([one.count(), one.quantile(0.5)]).toEqual([3, 0.03])
    one.clear()
    expect([one.count(), one.counts()]).toEqual([0, []])
  })
})

describe('median and quantileOf', () => {
  it('take the middle', () => {
    expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, Number.NaN])
    expect([quantileOf([3, 1, 2], 0.5), quantileOf([3, 1, 2], 1), quantileOf([], 0.5)]).toEqual([
      2,
      3,
      Number.NaN,
    ])
  })
})
