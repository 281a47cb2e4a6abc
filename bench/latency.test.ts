import { describe, expect, it } from 'vitest'
import { createLatencyHistogram, quantilesOf } from './latency.ts'

describe('the latency histogram', () => {
  it('has no quantiles without samples', () => {
    expect(quantilesOf(createLatencyHistogram())).toEqual({
      p50: Number.NaN,
      p95: Number.NaN,
      p99: Number.NaN,
    })
  })

  it('is exact below 2048 µs', () => {
    const histogram = createLatencyHistogram()
    for (let us = 1; us <= 2_000; us += 1) histogram.record(us)
    expect(histogram.count).toBe(2_000)
    expect(quantilesOf(histogram)).toEqual({ p50: 1, p95: 1.9, p99: 1.98 })
  })

  it('is within 0.1 % above, up to an hour', () => {
    for (const us of [2_049, 9_999, 123_456, 10_000_000, 3_600_000_000]) {
      const histogram = createLatencyHistogram()
      histogram.record(us)
      expect(Math.abs(quantilesOf(histogram).p50 / (us / 1_000) - 1)).toBeLessThan(0.001)
    }
  })

  it('agrees with sorted samples', () => {
    const histogram = createLatencyHistogram()
    const samples = Array.from({ length: 5_000 }, (_, n) => 1 + Math.round(((n * 7_919) % 5_000) ** 2 / 10))
    for (const us of samples) histogram.record(us)
    samples.sort((one, other) => one - other)
    const found = quantilesOf(histogram)
    for (const [share, ms] of [
      [0.5, found.p50],
      [0.95, found.p95],
      [0.99, found.p99],
    ] as const) {
      const exact = (samples[Math.ceil(share * samples.length) - 1] ?? Number.NaN) / 1_000
      expect(Math.abs(ms / exact - 1)).toBeLessThan(0.001)
    }
  })

  it('merges the samples of another histogram', () => {
    const [one, other] = [createLatencyHistogram(), createLatencyHistogram()]
    one.record(10)
    other.record(30)
    other.record(2_000)
    one.add(other)
    expect([one.count, quantilesOf(one).p50]).toEqual([3, 0.03])
  })
})
