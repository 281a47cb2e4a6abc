import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { IssuedCredential } from '../../client/wire.ts'
import { type HeldOptions, openHeld } from './open-held.ts'

// What is told at once is told before the clocks go on.
beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})
const settle = () => vi.advanceTimersByTimeAsync(0)

/** The events of a run, each as it is told. */
function told() {
  const waiting: unknown[] = []
  let wake = () => {}
  async function* events() {
    for (;;) {
      while (waiting.length > 0) yield waiting.shift()
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  const tell = (...credentials: string[]) => {
    const run = { state: 'running', reason: null, dead_at: null }
    waiting.push({ kind: 'state', at: new Date().toISOString(), run, credentials })
    wake()
  }
  return { events, tell }
}

function issued(id: string, lifeMs = 600_000) {
  const now = Date.now()
  const [created_at, expires_at] = [now, now + lifeMs].map((at) => new Date(at).toISOString())
  return { id, backend: 'orders', token: `secret of ${id}`, scopes: [], uses: [], created_at, expires_at }
}

async function holding(issue: () => Promise<unknown>, kind = Promise.resolve({ type: 'jwt' })) {
  const { events, tell } = told()
  const client = {
    issue,
    backend: () => kind,
    runs: { events },
    credential: () => new Promise(() => {}),
    revoke: async () => undefined,
  }
  tell()
  const opening = openHeld({
    client: client as unknown as HeldOptions['client'],
    run: { id: 'run_1', heartbeatMs: 60_000, beats: false },
    requests: [{ name: 'orders', request: { backend: 'orders' } }],
    clocks: { now: Date.now, monotonic: () => performance.now() },
    log: { warn: () => {} },
    placeholderFor: (_, field, secret) => `placeholder of ${field} ${secret.length}`,
    whyUnsure: () => undefined,
    onIssued: (_: Pick<IssuedCredential, 'id'>) => {},
    onRunEnded: () => {},
  })
  return { opening, tell }
}

test('the end of a credential that was shown before its answer came is told at once', async () => {
  const kind = Promise.withResolvers<{ type: string }>()
  const { opening, tell } = await holding(async () => issued('cred_1'), kind.promise)
  tell('cred_1')
  // So that the state is read first.
  await settle()
  kind.resolve({ type: 'jwt' })
  const { held, cuts, close } = await opening
  onTestFinished(close)
  const destroy = vi.fn()
  cuts.track('cred_1', destroy)
  expect(held[0]?.now()).toMatchObject({ state: 'live' })
  tell()
  await settle()
  // Before it would be asked for, as one that the server has never shown is.
  expect(destroy).toHaveBeenCalledTimes(1)
  expect(held[0]?.now()).toMatchObject({ state: 'ended' })
})

test('so is that of a renewed one', async () => {
  const answers = [issued('cred_1', 1_500), issued('cred_2')]
  const second = Promise.withResolvers<unknown>()
  const asked = vi.fn()
  const issue = async () => {
    asked()
    return asked.mock.calls.length === 1 ? answers[0] : second.promise
  }
  const { opening, tell } = await holding(issue)
  const { held, cuts, close } = await opening
  onTestFinished(close)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(asked).toHaveBeenCalledTimes(2)
  tell('cred_2')
  await settle()
  second.resolve(answers[1])
  await settle()
  expect(held[0]?.now()).toMatchObject({ credentialId: 'cred_2' })
  const destroy = vi.fn()
  cuts.track('cred_2', destroy)
  tell()
  await settle()
  expect(destroy).toHaveBeenCalledTimes(1)
})
