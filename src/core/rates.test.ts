import { describe, expect, it } from 'vitest'
import { createRates } from './rates.ts'

const TEN_AN_HOUR = { count: 10, perMs: 3_600_000 }
const FLOOD = 60_000

describe('a rate', () => {
  it('allows its count, says how long to wait, and refills evenly', () => {
    const rates = createRates()
    const taken = Array.from({ length: 11 }, () => rates.take('admit|ci', TEN_AN_HOUR, 0))
    expect(taken).toEqual([...Array.from({ length: 10 }, () => 0), 360])
    expect(rates.take('admit|ci', TEN_AN_HOUR, 359_000)).toBe(1)
    expect(rates.take('admit|ci', TEN_AN_HOUR, 360_000)).toBe(0)
    expect(rates.wait('admit|ci', TEN_AN_HOUR, 360_000)).toBe(360)
    expect(rates.wait('admit|other', TEN_AN_HOUR, 0)).toBe(0)
  })

  it('refills at the same pace after the clock was set back', () => {
    const rates = createRates()
    for (let count = 0; count < 10; count += 1) rates.take('admit|ci', TEN_AN_HOUR, 7_200_000)
    expect(rates.take('admit|ci', TEN_AN_HOUR, 0)).toBe(360)
    expect(rates.take('admit|ci', TEN_AN_HOUR, 360_000)).toBe(0)
  })

  it('survives a flood of keys of another limit', () => {
    const rates = createRates()
    for (let count = 0; count < 10; count += 1) rates.take('admit|ci', TEN_AN_HOUR, 0)
    for (let count = 0; count < FLOOD; count += 1) rates.take(`token|${count}`, TEN_AN_HOUR, 0)
    expect(rates.wait('admit|ci', TEN_AN_HOUR, 0)).toBe(360)
  })

  it('is dropped in a flood of its own limit only when it is unused', () => {
    const rates = createRates()
    for (const key of ['token|busy', 'token|idle'])
      for (let count = 0; count < 10; count += 1) rates.take(key, TEN_AN_HOUR, 0)
    for (let count = 0; count < FLOOD; count += 1) {
      rates.take(`token|${count}`, TEN_AN_HOUR, 0)
      if (count % 1_000 === 0) expect(rates.take('token|busy', TEN_AN_HOUR, 0)).toBe(360)
    }
    expect(rates.wait('token|idle', TEN_AN_HOUR, 0)).toBe(0)
  })
})
