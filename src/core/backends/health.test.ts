import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { DeadlineError } from '../../domain/abort.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createAgent } from '../agents/create-agent.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import { revokeCredential } from '../credentials/revoke-credential.ts'
import type { HealthChange } from '../parts.ts'
import { checkBackend } from './check-backend.ts'
import { changeBackend, createBackend } from './configure-backend.ts'
import { reasonOfCall, reasonOfCheck } from './health.ts'
import { readAnyBackend } from './list-backends.ts'

let test: TestCore
afterEach(() => test?.close())

async function world(script: Script) {
  test = await testCore({}, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const actor: Actor<AgentCaller> = await test.actor(token)
  const changes: HealthChange[] = []
  core.health.onChange((change) => changes.push(change))
  return {
    core,
    changes,
    health: async () => {
      const { caller } = LOCAL
      const generation = await core.store.generation()
      return core.health.of(await readAnyBackend(core, { ...caller, generation }, 'db'))
    },
    issue: () => issueCredential(core, actor, { backend: 'db' }),
    tryIssue: () =>
      issueCredential(core, actor, { backend: 'db' }).then(
        () => 'issued',
        ({ code }: { code: string }) => code,
      ),
  }
}

const refused = () =>
  new BackendError('unavailable', 'It cannot be reached.', { reason: 'refused', detail: 'ECONNREFUSED' })
const toldLines = () =>
  test
    .logged()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { level: string; msg: string })
    .filter(({ level }) => level !== 'debug')
    .map(({ msg }) => msg)

describe('the health of a backend', () => {
  it('is unknown until it was used, then up, down and up again, and is logged and passed on once each', async () => {
    let isAway = false
    const { health, issue, tryIssue, changes } = await world({
      issue: async () => {
        if (isAway) throw refused()
        return undefined
      },
    })
    expect(await health()).toMatchObject({ state: 'unknown', lastSuccess: undefined })
    await issue()
    expect(await health()).toMatchObject({ state: 'up', lastSuccess: test.core.store.now() })
    test.advance(1_000)
    isAway = true
    for (let turn = 0; turn < 20; turn += 1) await tryIssue()
    expect(await health()).toMatchObject({
      state: 'down',
      lastSuccess: test.core.store.now() - 1_000,
      lastFailure: test.core.store.now(),
      lastFailureReason: 'refused',
      lastFailureDetail: 'It cannot be reached.: ECONNREFUSED',
    })
    isAway = false
    test.advance(1_000)
    await issue()
    expect(await health()).toMatchObject({ state: 'up', lastFailureReason: 'refused' })
    expect(changes.map(({ from, to, reason, backend }) => [backend.name, from, to, reason])).toEqual([
      ['db', 'unknown', 'up', undefined],
      ['db', 'up', 'down', 'refused'],
      ['db', 'down', 'up', undefined],
    ])
    expect(toldLines()).toEqual([
      'the upstream of the backend is down',
      'the upstream of the backend is up again',
    ])
  })

  it('is not changed by a refusal that is the fault of the agent', async () => {
    let fault: BackendError | undefined
    const { health, issue, tryIssue, changes } = await world({
      issue: async () => {
        if (fault !== undefined) throw fault
        return undefined
      },
    })
    await issue()
    for (const kind of ['denied', 'misconfigured', 'unsupported'] as const) {
      fault = new BackendError(kind, 'No such table.')
      await tryIssue()
    }
    expect(await health()).toMatchObject({ state: 'up', lastFailure: undefined })
    expect(changes).toHaveLength(1)
  })

  it('is not changed by a failure during which another call succeeded, but by a refused login', async () => {
    const late = Promise.withResolvers<never>()
    let calls = 0
    const { health, issue, tryIssue } = await world({
      issue: () => {
        calls += 1
        return calls === 1 ? late.promise : Promise.resolve(undefined)
      },
    })
    const failing = tryIssue()
    await expect.poll(() => calls).toBe(1)
    test.advance(10)
    await issue()
    late.reject(refused())
    expect(await failing).toBe('backend_unavailable')
    expect(await health()).toMatchObject({ state: 'up', lastFailureReason: 'refused' })
  })

  it('comes from revocations, too, except that a holder can make one slow', async () => {
    let error: Error = new BackendError('timeout', 'It did not answer in time.')
    const { core, health, issue } = await world({
      revoke: async () => {
        throw error
      },
    })
    const { id } = await issue()
    await revokeCredential(core, LOCAL, id, 'admin:tokens:write')
    expect(await health()).toMatchObject({ state: 'up' })
    error = refused()
    test.advance(1)
    const { id: other } = await issue()
    test.advance(1)
    await revokeCredential(core, LOCAL, other, 'admin:tokens:write')
    expect(await health()).toMatchObject({ state: 'down', lastFailureReason: 'refused' })
  })

  it('stays while a change leaves the configuration alone, and survives a listener that throws', async () => {
    const { core, health, issue } = await world({})
    core.health.onChange(() => {
      throw new Error('a listener failed')
    })
    await issue()
    await changeBackend(core, LOCAL, 'db', { description: 'the shop' }, { check: false, force: false })
    expect(await health()).toMatchObject({ state: 'up' })
    expect(toldLines()).toEqual(['a change of health could not be passed on'])
  })
})

it('is up after a check that succeeds, which closes an open breaker', async () => {
  let isAway = true
  const { core, health, tryIssue } = await world({
    issue: async () => {
      if (isAway) throw refused()
      return undefined
    },
  })
  for (let turn = 0; turn < 20; turn += 1) await tryIssue()
  isAway = false
  expect(await tryIssue()).toBe('backend_unavailable')
  const { backend } = await checkBackend(core, LOCAL, 'db')
  expect(backend.breakers.issuing.wait()).toBe(0)
  expect(await health()).toMatchObject({ state: 'up', lastFailureReason: 'refused' })
  expect(await tryIssue()).toBe('issued')
})

describe('the reason of a failure', () => {
  const of = (...given: ConstructorParameters<typeof BackendError>) => new BackendError(...given)
  it.each([
    ['a deadline', new DeadlineError(), 'timeout', 'timeout'],
    ['a refused connection', refused(), 'refused', 'refused'],
    ['an untrusted certificate', of('misconfigured', '', { reason: 'tls' }), 'tls', 'tls'],
    ['an upstream that serves nobody', of('unavailable', ''), 'unavailable', 'unavailable'],
    ['too many requests', of('unavailable', '', { reason: 'rate_limited' }), 'rate_limited', 'rate_limited'],
    ['a refused login', of('denied', '', { login: true }), 'login_failed', 'login_failed'],
    ['a refused request', of('denied', ''), undefined, 'permission_missing'],
    ['what does not fit', of('misconfigured', ''), undefined, 'misconfigured'],
    ['a bug', new TypeError('undefined is not a function'), undefined, 'failed'],
  ])('for %s', (_, error, ofCall, ofCheck) => {
    expect([reasonOfCall(error), reasonOfCheck(error)]).toEqual([ofCall, ofCheck])
  })
})
