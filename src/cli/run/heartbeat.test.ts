import { expect, onTestFinished, test } from 'vitest'
import { json, problem, scripted } from '../../../test/support/scripted-server.ts'
import { createClient } from '../../client/client.ts'
import { keepBeating } from './heartbeat.ts'

const GOOD = json(200, { dead_at: '2026-01-01T00:00:00.000Z' })
const hang = () => {}

/** Beats at a server that answers so, and notes when each request came, in ms. */
async function beating(intervalMs: number, ...answers: Parameters<typeof scripted>) {
  const came: number[] = []
  const timed = answers.map((answer): typeof answer => (request, response) => {
    came.push(performance.now())
    answer(request, response)
  })
  const server = await scripted(...timed)
  const over = new AbortController()
  onTestFinished(async () => {
    over.abort(new Error('over'))
    await server.close()
  })
  const auth = { kind: 'bearer', token: 'ckr_x' } as const
  const { runs } = createClient({ server: server.url, auth })
  const notes: string[] = []
  const note = (text: string) => notes.push(text)
  const began = performance.now()
  const end = keepBeating({ runs, id: 'run_1', intervalMs, now: Date.now, note }, over.signal)
  const state = { isOver: false }
  const settle = () => Object.assign(state, { isOver: true })
  end.then(settle, settle)
  return { server, end, state, came, notes, passed: () => performance.now() - began }
}

test.each([
  [401, 'unauthorized'],
  [403, 'insufficient_scope'],
])(
  'counts the run as ended four intervals after the last good heartbeat when %i refuses them',
  async (status, code) => {
    const { server, end, passed } = await beating(200, GOOD, problem(status, code))
    expect(await end).toEqual({ reason: 'refused', endedBy: null })
    // One good beat after an interval, and then more than four.
    expect(passed()).toBeGreaterThanOrEqual(5 * 200)
    // Each refusal is recorded, so it asks no more often than once an interval.
    expect(server.seen.length).toBeLessThanOrEqual(1 + 5)
    expect(server.seen.length).toBeGreaterThan(2)
  },
)

test('a good heartbeat in between begins the four intervals anew', async () => {
  const refused = problem(401, 'unauthorized')
  const { end, passed } = await beating(150, refused, refused, refused, GOOD, refused)
  expect(await end).toMatchObject({ reason: 'refused' })
  expect(passed()).toBeGreaterThanOrEqual(8 * 150)
})

test('a server that hangs does not delay the next try, and ends nothing', async () => {
  const { state, came, notes } = await beating(1_000, hang, hang, GOOD, hang, GOOD)
  await expect.poll(() => came.length, { timeout: 10_000 }).toBe(5)
  const gaps = came.slice(1).map((at, index) => at - (came[index] ?? 0))
  // Twice an interval after one that hangs, and an interval after a good one.
  for (const hung of [0, 1, 3]) expect(gaps[hung]).toBeLessThan(900)
  expect(gaps[2]).toBeGreaterThan(950)
  expect([state.isOver, notes]).toEqual([false, []])
})
