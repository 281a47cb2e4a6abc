import { once } from 'node:events'
import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { createSweeper } from '../../jobs/sweep.ts'
import { StoreError } from '../../store/errors.ts'
import { createAgent } from '../agents/create-agent.ts'
import { changeBackend, createBackend } from '../backends/configure-backend.ts'
import { readAnyBackend } from '../backends/list-backends.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import type { Settings } from '../context.ts'
import { issueCredential } from './issue-credential.ts'
import { revokeCredential } from './revoke-credential.ts'

let test: TestCore
afterEach(() => test.close())

async function world(script: Script, settings: Partial<Settings> = {}) {
  test = await testCore(settings, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const actor: Actor<AgentCaller> = await test.actor(token)
  const issued: string[] = []
  const issue = () =>
    issueCredential(core, actor, { backend: 'db' }).then(
      ({ id }) => {
        issued.push(id)
        return 'issued'
      },
      (error: { code: string; retryAfterSeconds?: number }) =>
        `${error.code} ${error.retryAfterSeconds ?? ''}`.trim(),
    )
  return { core, issue, issued }
}

async function sweepOnce(core: TestCore['core']): Promise<void> {
  const sweeper = createSweeper(core)
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
}

const fail = (fault: Fault): Promise<never> => Promise.reject(new BackendError(fault, 'It said no.'))

describe('an upstream that restarts under 40 calls at once', () => {
  it('is asked again after one short pause, whatever ended with it', async () => {
    const away = Promise.withResolvers<void>()
    let under = 0
    let isBack = false
    const { issue } = await world({
      issue: async () => {
        under += 1
        if (isBack) return undefined
        await away.promise
        return fail('unavailable')
      },
    })
    const calls = Array.from({ length: 40 }, issue)
    await expect.poll(() => under).toBe(40)
    away.resolve()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['backend_unavailable 5']))
    isBack = true
    expect(await issue()).toBe('backend_unavailable 1')
    test.advance(1_000)
    expect(await issue()).toBe('issued')
    expect(new Set(await Promise.all(Array.from({ length: 40 }, issue)))).toEqual(new Set(['issued']))
  })
})

describe('an agent whose accounts cannot be ended in time', () => {
  it('opens no breaker, and delays nobody else', async () => {
    let calls = 0
    const held = new Set<unknown>()
    const { core, issue, issued } = await world(
      {
        revoke: async ({ id }, signal) => {
          if (!held.has(id)) return
          calls += 1
          await once(signal, 'abort')
        },
      },
      { upstreamTimeoutMs: 200 },
    )
    const bob = await test.actor((await createAgent(core, LOCAL, { name: 'bob', scopes: ['db'] })).token)
    const { id: others } = await issueCredential(core, bob, { backend: 'db' })
    for (let one = 0; one < 9; one += 1) expect(await issue()).toBe('issued')
    for (const id of issued) held.add(id)
    const ends = await Promise.all(
      issued.map((id) => revokeCredential(core, LOCAL, id, 'admin:tokens:write')),
    )
    expect(ends.map(({ upstream }) => upstream)).toEqual(issued.map(() => 'pending'))
    expect(calls).toBe(9)
    expect(await revokeCredential(core, bob, others)).toMatchObject({ upstream: 'revoked' })
  })

  it('has no more than its share under way at the upstream', async () => {
    let calls = 0
    const release = Promise.withResolvers<void>()
    const { core, issue, issued } = await world({
      revoke: async () => {
        calls += 1
        await release.promise
      },
    })
    for (let one = 0; one < 20; one += 1) await issue()
    const ends = issued.map((id) => revokeCredential(core, LOCAL, id, 'admin:tokens:write'))
    const ended = await Promise.race([Promise.all(ends), Promise.any(ends)])
    expect(ended).toMatchObject({ upstream: 'pending' })
    await expect.poll(() => calls).toBe(16)
    release.resolve()
    await Promise.all(ends)
    expect(calls).toBe(16)
  })
})

describe('an upstream that refuses', () => {
  it('our login is asked five times, then once after each pause, which doubles', async () => {
    let calls = 0
    let isRepaired = false
    const { issue } = await world({
      issue: async () => {
        calls += 1
        if (isRepaired) return undefined
        throw new BackendError('denied', 'Not you.', { login: true })
      },
    })
    const outcomes = new Set<string>()
    for (let turn = 0; turn < 200; turn += 1) outcomes.add(await issue())
    expect([calls, ...outcomes]).toEqual([5, 'backend_error', 'backend_unavailable 5'])
    test.advance(5_000)
    expect([await issue(), await issue(), calls]).toEqual(['backend_error', 'backend_unavailable 10', 6])
    isRepaired = true
    test.advance(10_000)
    expect([await issue(), await issue()]).toEqual(['issued', 'issued'])
  })

  it('one request after the other is asked each time', async () => {
    let calls = 0
    const { issue } = await world({
      issue: async () => {
        calls += 1
        return fail('denied')
      },
    })
    for (let turn = 0; turn < 20; turn += 1) expect(await issue()).toBe('backend_error')
    expect(calls).toBe(20)
  })
})

describe('an upstream that is well again', () => {
  it('ends at once what waits after failures', async () => {
    let isWell = false
    const { core, issue, issued } = await world({
      revoke: async () => (isWell ? undefined : fail('denied')),
    })
    for (let one = 0; one < 20; one += 1) await issue()
    const { uid } = await readAnyBackend(core, LOCAL.caller, 'db')
    const waiting = core.store.now() + 900_000
    for (const id of issued) {
      await revokeCredential(core, LOCAL, id, 'admin:tokens:write')
      await core.store.commit([
        core.store.credentials.postpone(id, {
          attempts: 12,
          dueAt: waiting,
          stuckAt: core.store.now(),
          failure: null,
        }),
      ])
    }
    isWell = true
    await sweepOnce(core)
    expect(await core.store.credentials.countOpenOfBackend(uid, 99)).toBe(20)
    // One of them is tried again.
    await core.store.commit([
      core.store.credentials.postpone(issued[0] ?? '', {
        attempts: 12,
        dueAt: core.store.now(),
        stuckAt: null,
        failure: null,
      }),
    ])
    await sweepOnce(core)
    expect(await core.store.credentials.countOpenOfBackend(uid, 99)).toBe(0)
  })

  it('ends at once what waits when its configuration changed', async () => {
    const { core, issue, issued } = await world({ revoke: () => fail('denied') })
    await issue()
    await revokeCredential(core, LOCAL, issued[0] ?? '', 'admin:tokens:write')
    const dueAt = async () => (await core.store.credentials.find(issued[0] ?? ''))?.dueAt
    expect(await dueAt()).toBeGreaterThan(core.store.now())
    await changeBackend(core, LOCAL, 'db', { config: {} }, { check: false, force: false })
    expect(await dueAt()).toBe(core.store.now())
  })
})

it('settles an interrupted issue once, although its own end is recorded after another node settled it', async () => {
  const { core, issue } = await world({ issue: () => fail('unavailable') })
  test.before(
    (change) =>
      change.some(
        (step) =>
          step.op === 'insert' && step.table === 'audit' && step.row.action === 'credential.issue_failed',
      ),
    async () => {
      test.advance(2 * core.settings.upstreamTimeoutMs)
      await sweepOnce(core)
      throw new StoreError('it is away')
    },
  )
  await issue()
  expect(await test.audit('credential.settled')).toHaveLength(1)
  await expect.poll(() => test.audit('credential.issue_failed')).toHaveLength(1)
  test.advance(60_000)
  await sweepOnce(core)
  expect(await test.audit('credential.settled')).toHaveLength(1)
})
