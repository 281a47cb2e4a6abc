import { expect, test } from 'vitest'
import { createCuts } from './cuts.ts'
import { createSignOfLife } from './sign-of-life.ts'

function clocks() {
  const state = { wall: 1_800_000_000_000, running: 0 }
  return {
    now: () => state.wall,
    monotonic: () => state.running,
    pass: (ms: number) => {
      state.wall += ms
      state.running += ms
    },
    setWall: (ms: number) => {
      state.wall += ms
    },
  }
}

test.each([
  [10_000, 15_000],
  [2_000, 6_000],
])('with a heartbeat of %d ms nothing is sure after a silence of %d ms', (heartbeat, silence) => {
  const time = clocks()
  const sign = createSignOfLife(time, heartbeat, true)
  sign.connected()
  time.pass(silence - 1)
  expect(sign.isSure()).toBe(true)
  time.pass(1)
  expect(sign.isSure()).toBe(false)
  // What waited in a buffer does not make it sure again; a new connection does.
  expect(sign.heard()).toBe(false)
  sign.connected()
  sign.beaten(0)
  expect(sign.isSure()).toBe(true)
})

test('what is open ends three intervals after the last answered beat was sent', () => {
  const time = clocks()
  const sign = createSignOfLife(time, 10_000, true)
  time.pass(9_000)
  sign.beaten(1_000)
  time.pass(28_999)
  expect(sign.isBeating()).toBe(true)
  time.pass(1)
  expect(sign.isBeating()).toBe(false)
})

test('a clock that is set back prolongs nothing, nor does a machine that sleeps', () => {
  const back = clocks()
  const one = createSignOfLife(back, 10_000, true)
  back.setWall(-3_600_000)
  back.pass(30_000)
  expect([one.isSure(), one.isBeating()]).toEqual([false, false])
  const asleep = clocks()
  const other = createSignOfLife(asleep, 10_000, true)
  asleep.setWall(30_000)
  expect([other.isSure(), other.isBeating()]).toEqual([false, false])
})

test('cuts what is open once, and what comes after the end at once', () => {
  const cuts = createCuts()
  const destroyed: string[] = []
  const open = (id: string, name: string) => cuts.track(id, () => destroyed.push(name))
  open('a', 'a1')
  const closed = open('a', 'a2')
  open('b', 'b1')
  closed()
  closed()
  expect(cuts.open).toBe(2)
  expect(cuts.cut('a')).toBe(1)
  open('a', 'a3')
  expect(destroyed).toEqual(['a1', 'a3'])
  expect(cuts.hold()).toBe(1)
  open('c', 'c1')
  cuts.lift()
  open('c', 'c2')
  expect(destroyed).toEqual(['a1', 'a3', 'b1', 'c1'])
  expect(cuts.open).toBe(1)
})
