import { expect, onTestFinished, test, vi } from 'vitest'
import type { IssuedCredential } from '../../client/wire.ts'
import { type HeldOptions, openHeld } from './open-held.ts'

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
  await new Promise((resolve) => setTimeout(resolve, 20))
  kind.resolve({ type: 'jwt' })
  const { held, cuts, close } = await opening
  onTestFinished(close)
  const destroy = vi.fn()
  cuts.track('cred_1', destroy)
  expect(held[0]?.now()).toMatchObject({ state: 'live' })
  const began = performance.now()
  tell()
  await vi.waitFor(() => expect(destroy).toHaveBeenCalledTimes(1))
  expect(held[0]?.now()).toMatchObject({ state: 'ended' })
  // Before it would be asked for, as one that the server has never shown is.
  expect(performance.now() - began).toBeLessThan(900)
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
  await vi.waitFor(() => expect(asked).toHaveBeenCalledTimes(2), { timeout: 5_000 })
  tell('cred_2')
  await new Promise((resolve) => setTimeout(resolve, 20))
  second.resolve(answers[1])
  await vi.waitFor(() => expect(held[0]?.now()).toMatchObject({ credentialId: 'cred_2' }))
  const destroy = vi.fn()
  cuts.track('cred_2', destroy)
  const began = performance.now()
  tell()
  await vi.waitFor(() => expect(destroy).toHaveBeenCalledTimes(1))
  expect(performance.now() - began).toBeLessThan(900)
})
