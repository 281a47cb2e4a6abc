import { describe, expect, it } from 'vitest'
import { createBreaker } from './breaker.ts'

function broken() {
  const clock = { now: 1_000_000 }
  const breaker = createBreaker(() => clock.now)
  for (let failure = 0; failure < 5; failure += 1) {
    expect(breaker.enter()).toBe(0)
    breaker.failed()
  }
  return { clock, breaker }
}

describe('the breaker', () => {
  it('opens at the fifth failure in a row, for longer each time, to a minute', () => {
    const { clock, breaker } = broken()
    const waits = Array.from({ length: 6 }, () => {
      const wait = breaker.wait()
      clock.now += wait * 1_000
      breaker.enter()
      breaker.failed()
      return wait
    })
    expect(waits).toEqual([5, 10, 20, 40, 60, 60])
  })

  it('does not stay open after the clock was set back', () => {
    const { clock, breaker } = broken()
    clock.now -= 3_600_000
    expect([breaker.wait(), breaker.enter()]).toEqual([0, 0])
    expect(breaker.wait()).toBe(5)
  })

  it('lets one call through after the pause; the others wait for its outcome', () => {
    const { clock, breaker } = broken()
    clock.now += 5_000
    expect([breaker.wait(), breaker.enter()]).toEqual([0, 0])
    expect([breaker.enter(), breaker.wait()]).toEqual([5, 5])
    breaker.succeeded()
    expect([breaker.enter(), breaker.enter()]).toEqual([0, 0])
  })

  it('lets the next call through when the first was cancelled', () => {
    const { clock, breaker } = broken()
    clock.now += 5_000
    breaker.enter()
    breaker.cancel()
    expect([breaker.enter(), breaker.enter()]).toEqual([0, 5])
  })

  it('lets another call through when the first one does not return', () => {
    const { clock, breaker } = broken()
    clock.now += 5_000
    breaker.enter()
    clock.now += 5_000
    expect(breaker.enter()).toBe(0)
  })
})
