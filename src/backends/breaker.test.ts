import { describe, expect, it } from 'vitest'
import { createBreaker, type Failure, type Pass } from './breaker.ts'

function closed() {
  const clock = { now: 1_000_000 }
  const breaker = createBreaker(() => clock.now)
  const enter = (): Pass => {
    const pass = breaker.enter()
    if (pass === undefined) throw new Error('it is open')
    return pass
  }
  return { clock, breaker, enter }
}

function broken(why: Failure = 'outage') {
  const parts = closed()
  for (let failure = 0; failure < 5; failure += 1) parts.enter().failed(why)
  return parts
}

describe('the breaker', () => {
  it.each<[Failure, number[]]>([
    ['outage', [1, 2, 4, 8, 15, 15]],
    ['login', [5, 10, 20, 40, 60, 60]],
  ])('opens at the fifth failure in a row (%s), for longer after each trial that fails', (why, pauses) => {
    const { clock, breaker, enter } = broken(why)
    const waits = Array.from(pauses, () => {
      const wait = breaker.wait()
      clock.now += wait * 1_000
      enter().failed(why)
      return wait
    })
    expect(waits).toEqual(pauses)
  })

  it('counts no failure of a call that began before its last change', () => {
    const { clock, breaker, enter } = closed()
    const underWay = Array.from({ length: 40 }, enter)
    for (const pass of underWay) pass.failed('outage')
    expect(breaker.wait()).toBe(1)
    clock.now += 1_000
    const trial = enter()
    const late = underWay[39]
    late?.failed('outage')
    expect(breaker.enter()).toBeUndefined()
    trial.answered()
    for (const pass of underWay) pass.failed('outage')
    expect(breaker.wait()).toBe(0)
  })

  it('counts no failure of a call during which another one was answered', () => {
    const { breaker, enter } = closed()
    const stuck = Array.from({ length: 9 }, enter)
    enter().answered()
    for (const pass of stuck) pass.failed('outage')
    expect(breaker.wait()).toBe(0)
  })

  it('takes two trials that fail together for one', () => {
    const { clock, breaker, enter } = broken()
    clock.now += 1_000
    const first = enter()
    clock.now += 5_000
    const second = enter()
    first.failed('outage')
    second.failed('outage')
    expect(breaker.wait()).toBe(2)
  })

  it('closes for a call that was answered, whenever it began', () => {
    const { breaker, enter } = closed()
    const early = enter()
    for (let failure = 0; failure < 5; failure += 1) enter().failed('outage')
    expect(breaker.wait()).toBe(1)
    early.answered()
    expect([breaker.wait(), breaker.isTrying()]).toEqual([0, false])
  })

  it('keeps outages and refused logins apart: a refused login ends an outage', () => {
    const { clock, breaker, enter } = broken('outage')
    clock.now += 1_000
    enter().failed('login')
    expect([breaker.wait(), breaker.isTrying()]).toEqual([0, false])
    for (let failure = 0; failure < 3; failure += 1) enter().failed('login')
    enter().failed('outage')
    enter().failed('login')
    expect(breaker.wait()).toBe(5)
  })

  it('does not stay open after the clock was set back', () => {
    const { clock, breaker, enter } = broken()
    clock.now -= 3_600_000
    expect(breaker.wait()).toBe(0)
    enter()
    expect(breaker.wait()).toBe(5)
  })

  it('lets one call through after the pause; the others wait for its outcome', () => {
    const { clock, breaker, enter } = broken()
    expect(breaker.isTrying()).toBe(true)
    clock.now += 1_000
    expect(breaker.wait()).toBe(0)
    const trial = enter()
    expect([breaker.enter(), breaker.wait()]).toEqual([undefined, 5])
    trial.answered()
    enter()
    enter()
    expect(breaker.isTrying()).toBe(false)
  })

  it('lets the next call through when the first was cancelled', () => {
    const { clock, breaker, enter } = broken()
    clock.now += 1_000
    enter().cancel()
    enter()
    expect(breaker.enter()).toBeUndefined()
  })

  it('lets another call through when the first one does not return', () => {
    const { clock, enter } = broken()
    clock.now += 1_000
    enter()
    clock.now += 5_000
    enter()
  })
})
