import { expect, it } from 'vitest'
import type { Core } from '../context.ts'
import { createAnswering } from './answering.ts'

const T0 = 1_800_000_000_000

/** A node with clocks that the test moves. */
function node() {
  const state = { at: T0, ticks: 0, reads: true, trouble: undefined as string | undefined }
  const store = {
    now: () => state.at,
    trouble: () => state.trouble,
    generation: () => (state.reads ? 1 : Promise.reject(new Error('away'))),
  }
  const answering = createAnswering({ store } as unknown as Pick<Core, 'store'>, () => state.ticks)
  const pass = (ms: number) => {
    state.at += ms
    state.ticks += ms
  }
  /** Answers for so long, with a look as often as the job has one. */
  const answer = async (ms: number) => {
    for (let left = ms; left > 0; left -= 250) {
      pass(Math.min(250, left))
      await answering.look()
    }
  }
  return { state, answering, pass, answer }
}

it('has never answered before its first look', async () => {
  const { answering, state } = node()
  expect(answering.since(1_000)).toBe(Number.POSITIVE_INFINITY)
  await answering.look()
  expect(answering.since(1_000)).toBe(state.at)
  expect(answering.since(3_600_000)).toBe(state.at)
})

it('answers since its start while it looks often', async () => {
  const { answering, answer } = node()
  await answering.look()
  await answer(60_000)
  expect(answering.since(1_000)).toBe(T0)
})

it.each([
  ['a frozen process', 30_000, 30_000],
  ['a frozen machine, whose monotonic clock stood still', 30_000, 0],
  ['a wall clock that was set back meanwhile', -5_000, 30_000],
])('does not answer after %s until it looks, and since then afterwards', async (_what, wall, monotonic) => {
  const { answering, answer, state } = node()
  await answering.look()
  await answer(10_000)
  state.at += wall
  state.ticks += monotonic
  expect(answering.since(10_000)).toBe(Number.POSITIVE_INFINITY)
  await answering.look()
  expect(answering.since(10_000)).toBe(state.at)
})

it.each([
  ['cannot be read', (state: { reads: boolean }) => Object.assign(state, { reads: false })],
  ['cannot be written', (state: object) => Object.assign(state, { trouble: 'read-only' })],
])('does not answer while the store %s', async (_what, breakIt) => {
  const { answering, answer, state } = node()
  await answering.look()
  await answer(10_000)
  breakIt(state)
  await answer(20_000)
  expect(answering.since(1_000)).toBe(Number.POSITIVE_INFINITY)
  Object.assign(state, { reads: true, trouble: undefined })
  await answer(250)
  expect(answering.since(10_000)).toBe(state.at)
})

it('forgives a gap that is short against the interval: rare ones keep no run alive', async () => {
  const { answering, answer, pass, state } = node()
  await answering.look()
  for (let n = 0; n < 5; n += 1) {
    await answer(60_000)
    pass(1_200)
    await answering.look()
  }
  expect(answering.since(3_600_000)).toBe(T0)
  expect(answering.since(2_000)).toBe(state.at)
})

it('takes gaps with too short an answer between them for one', async () => {
  const { answering, answer, pass, state } = node()
  await answering.look()
  await answer(60_000)
  for (let n = 0; n < 3; n += 1) {
    pass(4_000)
    await answering.look()
    await answer(1_000)
  }
  expect(answering.since(10_000)).toBe(state.at - 1_000)
})

it('remembers a long gap behind a short one', async () => {
  const { answering, answer, pass, state } = node()
  await answering.look()
  await answer(60_000)
  pass(20_000)
  await answering.look()
  const long = state.at
  await answer(60_000)
  pass(2_000)
  await answering.look()
  expect(answering.since(30_000)).toBe(long)
  expect(answering.since(2_000)).toBe(state.at)
})
