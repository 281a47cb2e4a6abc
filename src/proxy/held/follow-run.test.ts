import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { MayflyError, type MayflyErrorCode } from '../../client/errors.ts'
import { followRun } from './follow-run.ts'
import { createSignOfLife } from './sign-of-life.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const AT = '2026-11-27T10:00:00.000Z'
const state = (of: 'running' | 'ended', credentials: string[] = []) => ({
  kind: 'state',
  at: AT,
  run: { state: of, reason: of === 'ended' ? 'completed' : null, dead_at: null },
  credentials,
})
const refused = (status: number, code: MayflyErrorCode = 'unexpected_reply') =>
  new MayflyError({ code, status, message: 'No.' })

/** One list of events for each connection; an error breaks it. */
function following(...connections: unknown[][]) {
  const over = new AbortController()
  const clocks = { now: () => Date.now(), monotonic: () => performance.now() }
  const sign = createSignOfLife(clocks, 1_000, true)
  const onState = vi.fn()
  const onGone = vi.fn()
  let opened = 0
  async function* events() {
    opened += 1
    for (const event of connections.shift() ?? []) {
      if (event instanceof Error) throw event
      yield event
    }
  }
  const first = followRun(
    { runs: { events: events as never }, id: 'run_1', sign, clocks, onState, onAlive: () => {}, onGone },
    over.signal,
  )
  return { first, over, onState, onGone, sign, opened: () => opened }
}

test('goes on over another connection where one breaks, until the run has ended', async () => {
  const { first, onState } = following(
    [state('running', ['a']), new Error('reset')],
    [state('running')],
    [state('ended')],
  )
  await first
  await vi.advanceTimersByTimeAsync(1_000)
  expect(onState).toHaveBeenCalledTimes(3)
})

test('a run that has ended before is a failure, and not a wait without an end', async () => {
  const { first, onState } = following([state('ended')])
  await expect(first).rejects.toMatchObject({ code: 'run_ended' })
  expect(onState).toHaveBeenCalledTimes(1)
})

test('a server that has no such events is a failure', async () => {
  await expect(following([refused(404, 'not_found')]).first).rejects.toMatchObject({ code: 'no_events' })
})

test.each([
  [404, 'not_found'],
  [410, 'gone'],
] as const)('a run that the server does not know any more has ended: %s', async (status, code) => {
  const { first, onGone } = following([state('running')], [refused(status, code)])
  await first
  await vi.advanceTimersByTimeAsync(1_000)
  expect(onGone).toHaveBeenCalledTimes(1)
})

test('a 404 that is not of the server, as of an ingress while it restarts, ends no run', async () => {
  const { first, onState, onGone } = following([state('running')], [refused(404)], [state('ended')])
  await first
  await vi.advanceTimersByTimeAsync(1_000)
  expect(onState).toHaveBeenCalledTimes(2)
  expect(onGone).not.toHaveBeenCalled()
})

test('a server that refuses to say anything is no sign of life', async () => {
  const { first, sign, over } = following(
    [state('running')],
    ...Array.from({ length: 50 }, () => [refused(401)]),
  )
  await first
  expect(sign.isSure()).toBe(true)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sign.isSure()).toBe(false)
  over.abort(new Error('over'))
})

test('connections that end at once are opened ever more seldom', async () => {
  const { first, over, opened } = following([state('running')])
  await first
  await vi.advanceTimersByTimeAsync(1_500)
  expect(opened()).toBeLessThan(12)
  over.abort(new Error('over'))
})
