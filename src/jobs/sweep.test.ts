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
import { createSweeper } from './sweep.ts'

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

it('asks the store once for all backends of which nothing is due', async () => {
  const test = await testCore()
  const { core } = test
  for (let one = 0; one < 20; one += 1)
    await createBackend(core, LOCAL, { type: 'jwt', name: `tok-${one}`, config: { audience: 'x' } }, false)
  await core.backends.at(await core.store.generation())
  const asked: string[] = []
  const credentials = new Proxy(core.store.credentials, {
    get: (target, name) => {
      asked.push(String(name))
      return Reflect.get(target, name)
    },
  })
  const sweeper = createSweeper({ ...core, store: { ...core.store, credentials } })
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
  expect(asked).toHaveLength(1)
  await test.close()
})

describe('many credentials of an upstream that are due together', () => {
  const empty = Type.Object({}, { additionalProperties: false })
  const NOW = new AbortController().signal
  /** No call times out, however busy the machine. */
  const PATIENT = { upstreamTimeoutMs: 600_000 }

  /** A kind whose revocations take as long as `revoking` says, by the name of their backend. */
  const kindOf = (
    revoking: (backend: string, id: string) => Promise<unknown>,
  ): Kind<typeof empty, typeof empty> => ({
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
      revoke: async ({ id }) => void (await revoking(name, String(id))),
      recover: (id) => ({ id }),
      async [Symbol.asyncDispose]() {},
    }),
  })

  async function addDue(test: TestCore, name: string, count: number): Promise<() => Promise<number>> {
    const { core } = test
    const { uid } = await createBackend(core, LOCAL, { type: 'far', name, config: {} }, false)
    await addDueOf(test, { uid, name, agentId: 'ag_1', count })
    return () => core.store.credentials.countOpenOfBackend(uid, count)
  }

  async function addDueOf(
    { core }: TestCore,
    { uid, name, agentId, count }: { uid: string; name: string; agentId: string; count: number },
  ): Promise<string[]> {
    const dueAt = core.store.now() - 60_000
    // Long ago: no issue can be under way.
    const createdAt = dueAt - 2 * core.settings.upstreamTimeoutMs
    const due = {
      agentId,
      backendUid: uid,
      backend: name,
      sealedHandle: null,
      createdAt,
      expiresAt: dueAt,
      dueAt,
    }
    const rows = Array.from({ length: count }, () => someCredential({ ...due, revocation: 'exact' }))
    await core.store.commit(rows.map((row) => core.store.credentials.insert(row)))
    return rows.map(({ id }) => id)
  }

  it('end with more calls at once the longer one takes', async () => {
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

  it.each([1, 5])(
    'end although %i agents hold theirs for ever, with thousands that are due before',
    async (holders) => {
      const held = new Set<string>()
      const release = Promise.withResolvers<void>()
      const calls = { now: 0, most: 0 }
      const kind = kindOf(async (_, id) => {
        if (!held.has(id)) return
        calls.now += 1
        calls.most = Math.max(calls.most, calls.now)
        await release.promise
        throw new Error('let go')
      })
      const test = await testCore(PATIENT, [kind])
      const { core } = test
      const { uid } = await createBackend(core, LOCAL, { type: 'far', name: 'db', config: {} }, false)
      for (let one = 0; one < holders; one += 1) {
        const count = Math.ceil(5_000 / holders)
        for (const id of await addDueOf(test, { uid, name: 'db', agentId: `ag_mallory${one}`, count }))
          held.add(id)
      }
      const sweeper = createSweeper(core)
      const stopping = new AbortController()
      await sweeper.sweep(stopping.signal)
      await vi.waitFor(() => expect(calls.now).toBeGreaterThanOrEqual(4), 60_000)
      // Due last, and while the sweep is under way.
      const [mine] = await addDueOf(test, { uid, name: 'db', agentId: 'ag_alice', count: 1 })
      const settledAt = async () => (await core.store.credentials.find(mine ?? ''))?.settledAt
      await vi.waitFor(async () => expect(await settledAt()).not.toBeNull(), {
        timeout: 20_000,
        interval: 100,
      })
      expect(calls.most).toBeLessThanOrEqual(holders === 1 ? 4 : 23)
      stopping.abort()
      release.resolve()
      await sweeper.idle()
      await test.close()
    },
  )

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
