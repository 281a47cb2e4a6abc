import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { describe, expect, it, vi } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../test/support/core.ts'
import { addCredentials } from '../../test/support/many-credentials.ts'
import { someCredential } from '../../test/support/store.ts'
import type { Kind } from '../backends/kind.ts'
import { createBackend } from '../core/backends/configure-backend.ts'
import { deleteBackend } from '../core/backends/delete-backend.ts'
import { isScope } from '../domain/scope.ts'
import { createSweeper, settledAtOnce } from './sweep.ts'

it('erases the configuration of a deleted backend once its last credential is settled and nothing is kept upstream', async () => {
  const test = await testCore()
  const { core } = test
  // Nothing listens there, so that what it keeps upstream cannot be removed.
  const config = { host: '127.0.0.1', port: 1, database: 'app', username: 'mayfly', local: true }
  const { uid } = await createBackend(core, LOCAL, { type: 'postgres', name: 'db', config }, false)
  const dueAt = core.store.now() + 3_600_000
  const credential = someCredential({ backendUid: uid, state: 'revoking', dueAt })
  await core.store.commit([core.store.credentials.insert(credential)])
  await deleteBackend(core, LOCAL, 'db', true)
  const sweeper = createSweeper(core)
  const kept = async () => {
    await sweeper.sweep(new AbortController().signal)
    await sweeper.idle()
    return (await core.store.backends.find(uid))?.sealedConfig
  }
  expect(await kept()).toBeTypeOf('string')
  await core.store.commit([core.store.credentials.settle(credential.id, 'revoked', core.store.now())])
  expect(await kept()).toBeTypeOf('string')
  expect(test.logged()).toContain('"gaveUp":false')
  test.advance(600_001)
  expect(await kept()).toBeNull()
  expect(test.logged()).toContain('"gaveUp":true')
  await test.close()
})

it('goes on with a deletion that was interrupted between two slices', async () => {
  const test = await testCore()
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false)
  await addCredentials(core, 'tok', { id: 'ag_1', name: 'one' }, 10_100)
  expect(await deleteBackend(core, LOCAL, 'tok', true)).toMatchObject({ remaining: 10_100 })
  const stopping = new AbortController()
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.params.includes('backend_deleted')),
    async () => stopping.abort(),
  )
  const sweeper = createSweeper(core)
  await sweeper.sweep(stopping.signal)
  await sweeper.idle()
  expect(await deleteBackend(core, LOCAL, 'tok', true)).toMatchObject({ remaining: 10_000 })
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
  expect(await core.store.backends.findByName('tok')).toBeUndefined()
  const entries = await core.store.audit.query({ action: 'credential.revoked' }, 20_000)
  expect(entries).toHaveLength(10_100)
  await test.close()
})

describe('many credentials of an upstream that are due together', () => {
  const empty = Type.Object({}, { additionalProperties: false })
  const NOW = new AbortController().signal
  /** No call times out, however busy the machine. */
  const PATIENT = { upstreamTimeoutMs: 600_000 }

  /** A kind whose revocations take as long as `revoking` says, by the name of their backend. */
  const kindOf = (revoking: (backend: string) => Promise<unknown>): Kind<typeof empty, typeof empty> => ({
    type: 'far',
    title: 'Far away',
    config: empty,
    params: empty,
    limits: {},
    revocation: 'exact',
    upstream: true,
    scopes: { valid: isScope, forms: [], help: 'Any scope.' },
    open: async (_, { name }) => ({
      check: async () => [],
      issue: () => Promise.reject(new Error('nobody issues here')),
      revoke: async () => void (await revoking(name)),
      recover: () => ({}),
      async [Symbol.asyncDispose]() {},
    }),
  })

  async function addDue({ core }: TestCore, name: string, count: number): Promise<() => Promise<number>> {
    const { uid } = await createBackend(core, LOCAL, { type: 'far', name, config: {} }, false)
    const dueAt = core.store.now() - 60_000
    // Long ago: no issue can be under way.
    const createdAt = dueAt - 2 * core.settings.upstreamTimeoutMs
    const due = {
      backendUid: uid,
      backend: name,
      sealedHandle: null,
      createdAt,
      expiresAt: dueAt,
      dueAt,
    }
    const rows = Array.from({ length: count }, () => someCredential({ ...due, revocation: 'exact' }))
    await core.store.commit(rows.map((row) => core.store.credentials.insert(row)))
    return () => core.store.credentials.countOpenOfBackend(uid, count)
  }

  it('end with more calls at once the longer one takes, within bounds', async () => {
    expect([0, 3, 8].map(settledAtOnce)).toEqual([4, 4, 4])
    expect([20, 26].map(settledAtOnce)).toEqual([10, 13])
    expect([60, 10_000].map(settledAtOnce)).toEqual([16, 16])
    const all = Promise.withResolvers<void>()
    const calls = { now: 0, most: 0, made: 0 }
    const slow = kindOf(async () => {
      calls.now += 1
      calls.made += 1
      calls.most = Math.max(calls.most, calls.now)
      if (calls.now === 16) all.resolve()
      // Those of the first batch show how slow it is; the others wait for each other.
      await (calls.made <= 64 ? pause(40) : all.promise)
      calls.now -= 1
    })
    const test = await testCore(PATIENT, [slow])
    const left = await addDue(test, 'slow', 130)
    const sweeper = createSweeper(test.core)
    await sweeper.sweep(NOW)
    await sweeper.idle()
    expect(calls.most).toBe(16)
    expect(await left()).toBe(0)
    await test.close()
  })

  it('wait for no other upstream that does not answer', async () => {
    const answer = Promise.withResolvers<void>()
    let asked = 0
    const kind = kindOf(async (backend) => {
      if (backend !== 'dead') return
      asked += 1
      await answer.promise
    })
    const test = await testCore(PATIENT, [kind])
    const leftDead = await addDue(test, 'dead', 130)
    const leftQuick = await addDue(test, 'quick', 130)
    const sweeper = createSweeper(test.core)
    await sweeper.sweep(NOW)
    await vi.waitFor(async () => expect(await leftQuick()).toBe(0), 60_000)
    expect(await leftDead()).toBe(130)
    expect(asked).toBeLessThanOrEqual(4)
    answer.resolve()
    await sweeper.idle()
    expect(await leftDead()).toBe(0)
    await test.close()
  })
})
