import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CONFIRM_MS, createClock } from './clock.ts'

/** A machine whose clocks the test moves. */
function machine(floor = 0) {
  const told: number[] = []
  const followed: number[] = []
  let wall = 1_000_000
  let mono = 0
  const now = createClock({
    floor,
    wall: () => wall,
    monotonic: () => mono,
    onBehind: (ms) => told.push(ms),
    onFollow: (ms) => followed.push(ms),
  })
  return {
    now,
    told,
    followed,
    wall: () => wall,
    jump: (ms: number) => {
      wall += ms
    },
    pass: (ms: number) => {
      wall += ms
      mono += ms
    },
  }
}

test('follows the wall clock forward, and the monotonic clock while the wall clock is set back', () => {
  const { now, pass, jump, wall } = machine()
  expect(now()).toBe(1_000_000)
  pass(500)
  jump(-400_000)
  expect(now()).toBe(1_000_500)
  pass(2_000)
  expect(now()).toBe(1_002_500)
  jump(500_000)
  expect(now()).toBe(wall())
})

test.each([-5_000, -3_600_000])('follows a step of %d ms back once it has lasted for a minute', (step) => {
  const { now, pass, jump, wall, followed } = machine()
  now()
  jump(step)
  now()
  pass(CONFIRM_MS - 1)
  expect(now()).toBe(wall() - step)
  pass(1)
  expect(now()).toBe(wall())
  expect(followed).toEqual([-step])
  pass(1_000)
  expect(now()).toBe(wall())
})

test('follows no clock that is set again and again', () => {
  const { now, pass, jump, followed } = machine()
  let last = now()
  for (let n = 0; n < 100; n += 1) {
    jump(n % 2 === 0 ? -600_000 : 500_000)
    pass(CONFIRM_MS / 2)
    expect(now()).toBeGreaterThan(last)
    last = now()
  }
  expect(followed).toEqual([])
})

test('follows a clock that is behind its floor from the start', () => {
  const { now, pass, wall } = machine(5_000_000)
  expect(now()).toBe(5_000_000)
  pass(CONFIRM_MS)
  expect(now()).toBe(wall())
})

test('starts no earlier than its floor', () => {
  expect(machine(5_000_000).now()).toBe(5_000_000)
})

test('reports once that the wall clock was set back, and again after that clock has caught up', () => {
  const { now, pass, jump, told } = machine()
  now()
  for (const step of [-59_000, -2_000, -5_000, 100_000, -3_600_000]) {
    jump(step)
    now()
    pass(1)
    now()
  }
  expect(told).toEqual([61_000, 3_600_000])
})

test('goes on at least as fast as time passes, for any steps within a minute', () => {
  const steps = fc.array(fc.record({ jump: fc.integer({ min: -1e9, max: 1e9 }), pass: fc.nat(500) }), {
    maxLength: 100,
  })
  fc.assert(
    fc.property(steps, (all) => {
      const { now, jump, pass } = machine()
      let last = now()
      for (const step of all) {
        jump(step.jump)
        pass(step.pass)
        const read = now()
        expect(read).toBeGreaterThanOrEqual(last + step.pass)
        last = read
      }
    }),
  )
})
