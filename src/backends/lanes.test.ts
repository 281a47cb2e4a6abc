import { expect, it } from 'vitest'
import { createLanes, revokedAtOnce } from './lanes.ts'

function lanes() {
  const clock = { now: 0 }
  const made = createLanes(() => clock.now)
  const beginAll = (agentId: string, may = made.mayBegin) => {
    const ends = []
    while (may(agentId)) ends.push(made.begin(agentId))
    return ends
  }
  return { clock, made, beginAll }
}

it('has more at once the longer one takes, within bounds', () => {
  expect([0, 3, 8].map(revokedAtOnce)).toEqual([4, 4, 4])
  expect([20, 26].map(revokedAtOnce)).toEqual([10, 13])
  expect([60, 10_000].map(revokedAtOnce)).toEqual([16, 16])
})

it('gives the places of held ones to others, and no more to their agent', () => {
  const { clock, made, beginAll } = lanes()
  expect(beginAll('mallory')).toHaveLength(4)
  expect([made.isHeld(), made.room()]).toEqual([false, 4])
  clock.now += 1_000
  expect([made.isHeld(), made.room(), made.mayBegin('mallory')]).toEqual([true, 8, false])
  const ends = beginAll('alice')
  expect(ends).toHaveLength(4)
  for (const end of ends) end('settled')
  expect(made.of('alice')).toBe(0)
})

it('has a bound for all agents together', () => {
  const { clock, made, beginAll } = lanes()
  for (let agent = 0; agent < 20; agent += 1) beginAll(`mallory-${agent}`)
  clock.now += 1_000
  expect(made.room()).toBe(24)
})

it('tries at once what an agent revokes, but few for a minute after one that was held', () => {
  const { clock, made, beginAll } = lanes()
  const burst = beginAll('mallory', made.mayTry)
  expect(burst).toHaveLength(16)
  clock.now += 10_000
  for (const end of burst) end('failed')
  clock.now += 59_999
  expect(beginAll('mallory', made.mayTry)).toHaveLength(4)
  expect(beginAll('alice', made.mayTry)).toHaveLength(16)
})

it('learns how slow the upstream is from what ends, not from what fails', () => {
  const { clock, beginAll } = lanes()
  for (const outcome of ['failed', 'settled'] as const)
    for (let turn = 0; turn < 20; turn += 1) {
      const ends = beginAll('one')
      if (outcome === 'failed') expect(ends).toHaveLength(4)
      clock.now += 100
      for (const end of ends) end(outcome)
    }
  expect(beginAll('one')).toHaveLength(16)
})
