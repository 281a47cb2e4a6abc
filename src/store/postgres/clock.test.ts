import { beforeEach, describe, expect, test } from 'vitest'
import { createDatabaseClock, type DatabaseClock } from './clock.ts'

const T0 = 1_800_000_000_000
const HOUR = 3_600_000

let mono: number
/** The database's clock is this far ahead of `T0 + mono`. */
let ahead: number
let steps: number[]
let clock: DatabaseClock
beforeEach(() => {
  mono = 5_000
  ahead = 0
  steps = []
  clock = createDatabaseClock(
    (ms) => steps.push(ms),
    () => mono,
  )
  answer()
  answer()
})

/** Takes `ms` in all; the database reads its clock in the middle. */
function answer(ms = 2, at = T0 + mono + ms / 2 + ahead): void {
  const sent = mono
  mono += ms
  clock.learn({ at, sent, received: mono })
}

function answersFor(ms: number): void {
  for (const end = mono + ms; mono < end; mono += 98) answer()
}

test('two answers set it, and one does not', () => {
  const fresh = createDatabaseClock(
    () => undefined,
    () => mono,
  )
  const learn = (at: number) => fresh.learn({ at, sent: mono, received: mono })
  learn(T0 + HOUR)
  expect(fresh.isSet()).toBe(false)
  learn(T0)
  expect(fresh.isSet()).toBe(false)
  learn(T0 + 3)
  expect(fresh.isSet()).toBe(true)
  expect(fresh.now()).toBe(T0 + 3)
})

describe.each([-HOUR, HOUR])('an answer that is off by %i ms', (off) => {
  test('does not set the clock when it stands alone', () => {
    answer(2, T0 + mono + off)
    expect(clock.now()).toBe(T0 + mono)
    mono += 5_000
    answer()
    answer(2, T0 + mono + off)
    expect(clock.now()).toBe(T0 + mono)
    expect(steps).toEqual([])
  })

  test('sets it, and is reported once, when all answers say so for a second', () => {
    ahead = off
    answersFor(900)
    expect(clock.now()).toBe(T0 + mono)
    expect(steps).toEqual([])
    answersFor(300)
    expect(clock.now()).toBe(T0 + mono + off)
    expect(steps).toEqual([off])
    // It runs on from there: neither frozen nor back.
    const read = clock.now()
    mono += 5_000
    answersFor(5_000)
    expect(clock.now()).toBe(T0 + mono + off)
    expect(clock.now()).toBeGreaterThan(read + 9_000)
    expect(steps).toEqual([off])
  })
})

test('answers from two clocks in turn do not set it', () => {
  for (let n = 0; n < 100; n += 1) {
    ahead = n % 2 === 0 ? -HOUR : 0
    answer()
    mono += 100
  }
  expect(clock.now()).toBe(T0 + mono)
  expect(steps).toEqual([])
})

test('an answer for which a paused process waited a minute changes nothing', () => {
  answer(60_000, T0 + mono + 1)
  expect(clock.now()).toBe(T0 + mono)
  answer(60_000, T0 + mono + 59_999)
  expect(clock.now()).toBe(T0 + mono)
  expect(steps).toEqual([])
})

test('drift is followed, and never back', () => {
  let last = clock.now()
  for (let n = 0; n < 1_000; n += 1) {
    ahead += n % 3 === 0 ? -20 : 5
    answer()
    expect(clock.now()).toBeGreaterThanOrEqual(last)
    last = clock.now()
    mono += 98
  }
  expect(Math.abs(clock.now() - (T0 + mono + ahead))).toBeLessThan(200)
  expect(steps).toEqual([])
})
