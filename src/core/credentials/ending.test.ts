import { afterEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createSweeper } from '../../jobs/sweep.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { createLastRevocations } from '../backends/last-revocations.ts'
import { readAnyBackend } from '../backends/list-backends.ts'
import { readFacts } from '../backends/read-facts.ts'
import { issueCredential } from './issue-credential.ts'
import { listCredentials } from './list-credentials.ts'
import { readCredential } from './read-credential.ts'
import { revokeAll } from './revoke-all.ts'
import { revokeCredential } from './revoke-credential.ts'

const SCOPE = 'admin:tokens:write'

let test: TestCore
afterEach(() => test.close())

async function world(script: Script) {
  test = await testCore({}, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const agent = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const actor = await test.actor(agent.token)
  const issue = async () => (await issueCredential(core, actor, { backend: 'db' })).id
  const backend = await readAnyBackend(core, LOCAL.caller, 'db')
  const facts = async () => (await readFacts(core, [backend]))[0]?.facts
  const view = (id: string) => readCredential(core, LOCAL.caller, id, SCOPE)
  const unended = async () => (await listCredentials(core, { unended: true })).items.map(({ id }) => id)
  async function sweep(): Promise<void> {
    const sweeper = createSweeper(core)
    await sweeper.sweep(new AbortController().signal)
    await sweeper.idle()
  }
  return { core, agent: agent.agent, backend, issue, facts, view, unended, sweep }
}

it('shows why a credential has not ended upstream, when it is tried next, and that it is done', async () => {
  let isWell = false
  const { core, backend, issue, facts, view, unended, sweep } = await world({
    revoke: () =>
      isWell ? Promise.resolve(undefined) : Promise.reject(new BackendError('denied', 'It said no.')),
  })
  const [id, living] = [await issue(), await issue()]
  expect(await view(living)).toMatchObject({ status: 'active', endedAt: null, endReason: null })
  expect((await view(living)).ending).toBeUndefined()
  expect(await facts()).toMatchObject({ live: 2, unended: undefined })
  const endedAt = core.store.now()
  await revokeCredential(core, LOCAL, id, SCOPE)
  const failed = await view(id)
  expect(failed).toMatchObject({ status: 'revoked', endedAt, endReason: 'revoked', upstream: 'pending' })
  expect(failed.ending).toMatchObject({ attempts: 1, isStuck: false, failure: 'permission_missing' })
  expect(failed.ending?.nextTry).toBeGreaterThanOrEqual(endedAt)
  expect(await unended()).toEqual([id])
  const lastFailure = { at: endedAt, reason: 'permission_missing', credentialId: id }
  expect(await facts()).toEqual({ live: 1, unended: { count: 1, since: endedAt }, lastFailure })

  for (let tries = 0; tries < 5; tries += 1) {
    test.advance(900_000)
    await sweep()
  }
  expect((await view(id)).ending).toMatchObject({ attempts: 6, isStuck: true })

  // What the first node knows, another knows once it is written.
  const other = createLastRevocations(core)
  expect((await other.all()).get(backend.uid)).toBeUndefined()
  await core.revocations.flush()
  // The other one has expired meanwhile, and its end is refused, too; which was tried last is left to their ids.
  expect([id, living]).toContain((await other.all()).get(backend.uid)?.lastFailure?.credentialId)

  isWell = true
  test.advance(900_000)
  await sweep()
  expect(await view(id)).toMatchObject({ upstream: 'revoked', endedAt })
  expect((await view(id)).ending).toBeUndefined()
  expect(await unended()).toEqual([])
  expect(await facts()).toMatchObject({ lastSuccess: core.store.now(), unended: undefined })
})

it('shows the end of one that has expired and that the sweeper has not reached', async () => {
  const { core, issue, view } = await world({})
  const id = await issue()
  const { expiresAt } = await view(id)
  test.advance(expiresAt - core.store.now())
  expect(await view(id)).toMatchObject({ status: 'expired', endedAt: expiresAt, endReason: 'expired' })
})

it('ends all of an agent, also what is being issued, with an entry each, and the sweeper does the rest', async () => {
  const gate = Promise.withResolvers<void>()
  let asked = 0
  const revoked: unknown[] = []
  const { core, agent, issue, sweep, unended } = await world({
    issue: async () => {
      asked += 1
      if (asked > 3) await gate.promise
      return undefined
    },
    revoke: async ({ id }) => void revoked.push(id),
  })
  const ids = [await issue(), await issue(), await issue()]
  const late = issue().catch((error: { code: string }) => error.code)
  await expect.poll(() => asked).toBe(4)
  expect(await revokeAll(core, LOCAL, { agent: 'ONE' })).toEqual({ revoked: 4, remaining: 0 })
  expect(await revokeAll(core, LOCAL, { agent: agent.id, backend: 'DB' })).toEqual({
    revoked: 0,
    remaining: 0,
  })
  expect((await unended()).length).toBe(4)
  gate.resolve()
  expect(await late).toBe('conflict')
  test.advance(60_000)
  await sweep()
  expect(await unended()).toEqual([])
  expect(revoked.length).toBeGreaterThanOrEqual(4)
  const entries = await test.audit('credential.revoked')
  expect(entries).toHaveLength(4)
  expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set(['local']))
  expect(entries.map(({ credentialId }) => credentialId)).toEqual(expect.arrayContaining(ids))
})

it('ends no more than it may at once, and says what is left', async () => {
  const { core, issue } = await world({})
  for (let n = 0; n < 5; n += 1) await issue()
  const small = { ...core, store: { ...core.store, endSlice: 2 } }
  // Another request ends one of a slice that was read: it is read again.
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.rows === 2),
    async () => {
      const [newest] = (await listCredentials(core, { status: 'active' })).items
      await revokeCredential(core, LOCAL, newest?.id ?? '', SCOPE)
    },
  )
  expect((await revokeAll(small, LOCAL, { backend: 'db' })).remaining).toBe(0)
  expect((await listCredentials(core, { status: 'active' })).items).toEqual([])
  expect(await test.audit('credential.revoked')).toHaveLength(5)
})

it.each([
  [{}, 'invalid_request'],
  [{ agent: 'nobody' }, 'agent_not_found'],
  [{ backend: 'nothing' }, 'backend_not_found'],
  [{ agent: 'one', backend: 'nothing' }, 'backend_not_found'],
])('ends nothing of %j', async (command, code) => {
  const { core, issue, view } = await world({})
  const id = await issue()
  await expect(revokeAll(core, LOCAL, command)).rejects.toMatchObject({ code })
  expect(await view(id)).toMatchObject({ status: 'active' })
})
