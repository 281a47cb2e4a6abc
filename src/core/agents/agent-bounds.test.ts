import { afterEach, describe, expect, it } from 'vitest'
import { ANYBODY, LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { compilePolicies, type PolicyEntry } from '../../config/policies.ts'
import { HOUR_MS } from '../../domain/limits.ts'
import { createBackend } from '../backends/configure-backend.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import { approveEnrollment } from '../enrollments/approve-enrollment.ts'
import { enroll } from '../enrollments/enroll.ts'
import { requestScopes } from '../enrollments/request-scopes.ts'
import { recordBounds } from './agent-bounds.ts'
import { createAgent } from './create-agent.ts'

const CI: PolicyEntry = {
  name: 'ci',
  pattern: 'ci-*',
  scopes: ['api'],
  auto_approve: true,
  max_agent_lifetime: '2h',
  max_ttl: '15m',
  max_active: 2,
  issue_rate: '100/hour',
}
const compile = (entries: readonly PolicyEntry[]) =>
  compilePolicies(entries, (fault) => {
    throw fault
  })

let test: TestCore
let policies: ReturnType<typeof compile>
async function start(...entries: PolicyEntry[]): Promise<void> {
  policies = compile(entries)
  test = await testCore({ policies, enrollmentsPerMinute: 1_000 })
  await createBackend(test.core, LOCAL, { type: 'jwt', name: 'api', config: { audience: 'a' } }, false)
}
afterEach(() => test.close())

/** As a restart with another file does. */
async function configure(...entries: PolicyEntry[]): Promise<void> {
  policies.splice(0, policies.length, ...compile(entries))
  await recordBounds(test.core)
}

const { publicKey } = newEnrollee()
const ask = (name: string, scopes = ['api']) =>
  enroll(test.core, ANYBODY, { name, scopes, public_key: publicKey })

/** The agent of this name, as it is read now. */
async function actorOf(name: string): Promise<Actor<AgentCaller>> {
  const agent = await test.core.store.agents.findByName(name)
  const client = await test.core.callers.readClient(agent?.clientId ?? '', await test.core.store.generation())
  if (client === undefined) throw new Error('no such agent')
  return { caller: client.caller, origin: ORIGIN }
}
const issue = async (name: string, ttl = '15m') =>
  issueCredential(test.core, await actorOf(name), { backend: 'api', ttl })

/** Within the bounds of CI, and not beyond them. */
async function expectBound(name: string): Promise<void> {
  await expect(issue(name, '16m')).rejects.toMatchObject({ code: 'ttl_exceeded' })
  await issue(name)
  await issue(name)
  await expect(issue(name)).rejects.toMatchObject({ code: 'rate_limited' })
}

describe('the bounds of a policy', () => {
  it('bind an agent that an administrator approved by hand', async () => {
    await start({ ...CI, auto_approve: false })
    await approveEnrollment(test.core, LOCAL, (await ask('ci-1')).id, {})
    const agent = await test.core.store.agents.findByName('ci-1')
    expect(agent).toMatchObject({ policy: 'ci', createdBy: 'local' })
    expect((agent?.expiresAt ?? 0) - (agent?.createdAt ?? 0)).toBe(2 * HOUR_MS)
    expect((await test.audit('agent.created'))[0]?.facts).toMatchObject({ policy: 'ci' })
    await expectBound('ci-1')
  })

  it('include its lifetime, which an administrator may shorten, not extend', async () => {
    await start({ ...CI, auto_approve: false })
    const { id } = await ask('ci-1')
    await expect(approveEnrollment(test.core, LOCAL, id, { expires_in: '3h' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('at most 2h'),
    })
    const { lifetimeMs } = await approveEnrollment(test.core, LOCAL, id, { expires_in: '1h' })
    expect(lifetimeMs).toBe(HOUR_MS)
  })

  it.each([
    ['renamed', [{ ...CI, name: 'builds' }]],
    ['removed', []],
    ['loosened', [{ ...CI, max_ttl: '10h', max_active: 50 }]],
  ])('stay with its agents when it is %s', async (_, later) => {
    await start(CI)
    await ask('ci-1')
    await configure(...later)
    await expectBound('ci-1')
  })

  it('reach its agents when they become tighter', async () => {
    await start(CI)
    await ask('ci-1')
    await configure({ ...CI, max_ttl: '5m' })
    await expect(issue('ci-1')).rejects.toMatchObject({ code: 'ttl_exceeded' })
    await issue('ci-1', '5m')
  })

  it('bind the agents that its agents create and approve', async () => {
    await start({ ...CI, auto_approve: false })
    const scopes = ['api', 'admin:agents:write', 'admin:enrollments:write']
    await approveEnrollment(test.core, LOCAL, (await ask('ci-1')).id, { scopes })
    const parent = await actorOf('ci-1')
    await createAgent(test.core, parent, { name: 'child', scopes: ['api'], expires_in: '1h' })
    const { id } = await ask('approved')
    await approveEnrollment(test.core, parent, id, { expires_in: '1h' })
    await configure()
    await expectBound('child')
    await expectBound('approved')
  })

  it('are no way around for who approves the requests of others: an agent with wider ones gets no more scopes', async () => {
    await start({ ...CI, auto_approve: false })
    const scopes = ['api', 'admin:enrollments:write']
    await approveEnrollment(test.core, LOCAL, (await ask('ci-1')).id, { scopes })
    await approveEnrollment(test.core, LOCAL, (await ask('ci-2', ['api'])).id, {})
    await createAgent(test.core, LOCAL, { name: 'free' })
    const wider = await requestScopes(test.core, await actorOf('free'), { scopes: ['api'], expires_in: '1h' })
    const same = await requestScopes(test.core, await actorOf('ci-2'), {
      scopes: ['api:x'],
      expires_in: '1h',
    })
    const approver = await actorOf('ci-1')
    await expect(approveEnrollment(test.core, approver, wider.id, {})).rejects.toMatchObject({
      code: 'insufficient_scope',
      message: 'This agent may have more credentials, or for longer, than you may.',
    })
    expect((await approveEnrollment(test.core, approver, same.id, {})).status).toBe('approved')
    await approveEnrollment(test.core, LOCAL, wider.id, {})
  })

  it('limit the rate of all its agents together, under any name', async () => {
    await start({ ...CI, issue_rate: '2/hour' })
    await ask('ci-1')
    await ask('ci-2')
    await configure({ ...CI, name: 'builds' })
    await issue('ci-1')
    await issue('ci-2')
    await expect(issue('ci-2')).rejects.toMatchObject({ code: 'rate_limited' })
  })

  it('are recorded at the next start for agents of an earlier build', async () => {
    await start(CI)
    await ask('ci-1')
    // As an earlier build left it.
    await test.core.store.commit([{ op: 'run', sql: 'UPDATE agents SET bounds = NULL', params: [], rows: 1 }])
    await configure(CI)
    await configure({ ...CI, name: 'builds' })
    await expectBound('ci-1')
  })

  it('do not bind other agents', async () => {
    await start(CI)
    await createAgent(test.core, LOCAL, { name: 'free', scopes: ['api'] })
    await approveEnrollment(test.core, LOCAL, (await ask('other')).id, {})
    for (const name of ['free', 'other']) {
      expect((await actorOf(name)).caller).toMatchObject({ policy: null, bounds: {} })
      await issue(name, '20h')
    }
  })
})
