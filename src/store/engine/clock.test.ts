import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createClock } from './clock.ts'

test('follows the wall clock forward, and the monotonic clock while the wall clock is set back', () => {
  let wall = 1_000_000
  let mono = 0
  const pass = (ms: number) => {
    wall += ms
    mono += ms
  }
  const now = createClock(
    0,
    () => wall,
    () => mono,
  )
  expect(now()).toBe(1_000_000)
  pass(500)
  wall -= 400_000
  expect(now()).toBe(1_000_500)
  pass(2_000)
  expect(now()).toBe(1_002_500)
  wall += 500_000
  expect(now()).toBe(wall)
})

test('starts no earlier than its floor', () => {
  const now = createClock(
    5_000,
    () => 1_000,
    () => 0,
  )
  expect(now()).toBe(5_000)
})

test('reports once that the wall clock was set back, and again after that clock has caught up', () => {
  let wall = 1_000_000
  let mono = 0
  const told: number[] = []
  const now = createClock(
    0,
    () => wall,
    () => mono,
    (ms) => told.push(ms),
  )
  for (const jump of [-59_000, -2_000, -5_000, 100_000, -3_600_000]) {
    wall += jump
    now()
    mono += 1
    wall += 1
    now()
  }
  expect(told).toEqual([61_000, 3_600_000])
})

test('never goes back and never stands still, for any steps of the wall clock', () => {
  const steps = fc.array(fc.record({ jump: fc.integer({ min: -1e9, max: 1e9 }), pass: fc.nat(5_000) }))
  fc.assert(
    fc.property(steps, (all) => {
      let wall = 1e12
      let mono = 0
      const now = createClock(
        0,
        () => wall,
        () => mono,
      )
      let last = now()
      for (const { jump, pass } of all) {
        wall += jump + pass
        mono += pass
        const read = now()
        expect(read).toBeGreaterThanOrEqual(last + pass)
        last = read
      }
    }),
  )
})
