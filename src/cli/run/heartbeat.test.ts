import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { MayflyError } from '../../client/errors.ts'
import { type BeatOptions, keepBeating } from './heartbeat.ts'

// A beat has a part of an interval for its answer, and an interval here is short: the clocks go on only with the test.
beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const GOOD = { dead_at: '2026-01-01T00:00:00.000Z' }
const HANGS = new Promise<never>(() => {})

/** Beats at a server that answers so, and notes when each request came, in ms. */
function beating(intervalMs: number, ...answers: (typeof GOOD | typeof HANGS | MayflyError)[]) {
  const began = performance.now()
  const passed = () => Math.round(performance.now() - began)
  const came: number[] = []
  const beat: BeatOptions['runs']['beat'] = async () => {
    came.push(passed())
    const answer = answers[Math.min(came.length, answers.length) - 1]
    if (answer instanceof MayflyError) throw answer
    return (await answer) as never
  }
  const nobodyAsks = () => {
    throw new Error('nobody asks for that')
  }
  const over = new AbortController()
  onTestFinished(() => over.abort(new Error('over')))
  const notes: string[] = []
  const note = (text: string) => notes.push(text)
  const runs = { beat, show: nobodyAsks, list: nobodyAsks }
  const end = keepBeating({ runs, id: 'run_1', intervalMs, now: Date.now, note }, over.signal)
  const settled = vi.fn()
  end.then((why) => settled({ why, at: passed() }), settled)
  return { settled, came, notes }
}

const refusal = (status: number, code: 'unauthorized' | 'insufficient_scope') =>
  new MayflyError({ code, status, message: 'No.' })

test.each([
  [401, 'unauthorized'],
  [403, 'insufficient_scope'],
] as const)(
  'counts the run as ended four intervals after the last good heartbeat when %i refuses them',
  async (status, code) => {
    const { settled, came } = beating(200, GOOD, refusal(status, code))
    await vi.advanceTimersByTimeAsync(5_000)
    // Each refusal is recorded, so it asks no more often than once an interval.
    expect(came).toEqual([200, 400, 600, 800, 1_000, 1_200])
    expect(settled.mock.calls).toEqual([[{ why: { reason: 'refused', endedBy: null }, at: 1_200 }]])
  },
)

test('a good heartbeat in between begins the four intervals anew', async () => {
  const refused = refusal(401, 'unauthorized')
  const { settled } = beating(150, refused, refused, refused, GOOD, refused)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(settled.mock.calls).toEqual([[{ why: { reason: 'refused', endedBy: null }, at: 9 * 150 }]])
})

test('a server that hangs does not delay the next try, and ends nothing', async () => {
  const { settled, came, notes } = beating(1_000, HANGS, HANGS, GOOD, HANGS, GOOD)
  await vi.advanceTimersByTimeAsync(3_400)
  // Twice an interval after one that hangs, and an interval after a good one.
  expect(came).toEqual([1_000, 1_450, 1_900, 2_900, 3_350])
  expect([settled.mock.calls, notes]).toEqual([[], []])
})
