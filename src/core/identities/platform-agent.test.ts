import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ANYBODY, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import type { Claims, Platform } from '../../domain/identity/identity.ts'
import { CLAIM_MS, DAY_MS, HOUR_MS, MAX_PENDING_CLAIMS, PLATFORM_AGENT_MS } from '../../domain/limits.ts'
import { agentStatus } from '../agents/agent-status.ts'
import { changeAgent } from '../agents/change-agent.ts'
import { createAgent } from '../agents/create-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { reapAgents } from '../agents/reap-agents.ts'
import { commit } from '../commit.ts'
import { approveEnrollment } from '../enrollments/approve-enrollment.ts'
import { expireEnrollments } from '../enrollments/expire-enrollments.ts'
import { judgePending } from '../enrollments/judge-pending.ts'
import { listPending } from '../enrollments/list-pending.ts'
import { rejectEnrollment } from '../enrollments/reject-enrollment.ts'
import { heldScopes } from '../held-scopes.ts'
import { agentOfPlatform, digitsOf } from './platform-agent.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

const ISSUER = 'https://agents.test'
const platform = (name: string, scopes: Platform['scopes'] = []): Platform => ({
  name,
  issuer: ISSUER,
  audience: 'https://mayfly.test',
  keys: { jwks: { keys: [] }, jwksUri: undefined, ca: undefined, local: false },
  scopes,
})
const ACME = platform('acme', [
  { claim: 'groups', value: 'readers', scopes: ['db:read'] },
  { claim: 'role', value: 'admin', scopes: ['db:write'] },
])

/** A log-in, as the token endpoint does it: the steps are one commit. */
async function logIn(subject: string, claims: Claims = {}, of = ACME) {
  const made = await agentOfPlatform(test.core, ANYBODY, of, { issuer: ISSUER, subject, claims })
  const outcome = await commit(test.core, ANYBODY, made.steps)
  return { ...made, outcome, held: heldScopes(made.agent, made.grants) }
}
const find = async (name: string) => await test.core.store.agents.findByName(name)
const waiting = async () => (await listPending(test.core, {})).items
const approve = (id: string, command = {}) => approveEnrollment(test.core, LOCAL, id, command)

describe('an agent of a platform', () => {
  it('comes in without any right, and waits in the inbox', async () => {
    const { agent, isNew, held } = await logIn('agent-7', { team: 'red', iat: 5 })
    expect(isNew).toBe(true)
    expect(held).toEqual([])
    expect(await find(agent.name)).toMatchObject({
      name: `acme-${digitsOf('agent-7')}`,
      identity: 'platform:acme',
      identityValues: [ISSUER, 'agent-7'],
      createdBy: 'platform:acme',
      scopes: [],
      expiresAt: test.core.store.now() + DAY_MS,
      bearerHash: agent.id,
      clientSecretHash: '',
    })
    expect(await waiting()).toMatchObject([
      {
        type: 'claim',
        name: agent.name,
        agentId: agent.id,
        scopes: [],
        isTaken: false,
        ipAddress: '192.0.2.1',
        metadata: { platform: 'acme', issuer: ISSUER, subject: 'agent-7', claims: { team: 'red' } },
      },
    ])
    expect((await test.audit('enrollment.requested'))[0]).toMatchObject({
      agentName: agent.name,
      facts: { type: 'claim', platform: 'acme', issuer: ISSUER, subject: 'agent-7' },
    })
  })

  it('is the same one with each login, and no other with a subject that differs in case or by a character', async () => {
    const names = new Set<string>()
    for (const subject of [
      'a',
      'A',
      'a ',
      'a\u0000',
      'á',
      'a\u0301',
      'acme-a',
      '../a',
      '__proto__',
      'x'.repeat(9_000),
    ]) {
      const [one, two] = [await logIn(subject), await logIn(subject)]
      expect(two.agent.id).toBe(one.agent.id)
      expect(one.outcome.done && two.outcome.done).toBe(true)
      expect(one.agent.name).toMatch(/^acme-[a-z2-7]{12}$/)
      names.add(one.agent.name)
    }
    expect(names.size).toBe(10)
    expect((await waiting()).length).toBe(10)
  })

  it('never is the agent of another platform, or of another issuer of the same name', async () => {
    const [one, other] = [await logIn('a'), await logIn('a', {}, platform('other'))]
    expect(other.agent.id).not.toBe(one.agent.id)
    const moved = { issuer: 'https://elsewhere.test', subject: 'a', claims: {} }
    await expect(agentOfPlatform(test.core, ANYBODY, ACME, moved)).rejects.toMatchObject({
      reason: 'name_taken',
      entries: ['acme'],
    })
  })

  it('takes over no agent that somebody made', async () => {
    await createAgent(test.core, LOCAL, { name: `acme-${digitsOf('a')}`, scopes: ['db'] })
    await expect(logIn('a')).rejects.toMatchObject({ reason: 'name_taken' })
  })

  it('comes in once when two logins race', async () => {
    const proven = { issuer: ISSUER, subject: 'a', claims: {} }
    const [one, two] = [
      await agentOfPlatform(test.core, ANYBODY, ACME, proven),
      await agentOfPlatform(test.core, ANYBODY, ACME, proven),
    ]
    expect((await commit(test.core, ANYBODY, one.steps)).done).toBe(true)
    expect((await commit(test.core, ANYBODY, two.steps)).done).toBe(false)
    expect((await logIn('a')).agent.id).toBe(one.agent.id)
    expect((await waiting()).length).toBe(1)
  })
})

describe('the mapping of claims', () => {
  it('gives scopes at once, and takes them when the claims are others', async () => {
    const first = await logIn('a', { groups: ['x', 'readers'], role: 'admin' })
    expect(first.held).toEqual(['db:read', 'db:write'])
    expect(await waiting()).toEqual([])
    expect((await logIn('a', { groups: ['readers'] })).held).toEqual(['db:read'])
    const none = await logIn('a', { groups: 'Readers' })
    expect(none.held).toEqual([])
    expect((await find(none.agent.name))?.scopes).toEqual([])
    expect((await waiting()).map(({ agentId }) => agentId)).toEqual([first.agent.id])
  })

  it('decides the claim of an agent that waits', async () => {
    const { agent } = await logIn('a')
    const [claim] = await waiting()
    await logIn('a', { role: 'admin' })
    expect(await waiting()).toEqual([])
    expect(await test.core.store.enrollments.find(claim?.id ?? '')).toMatchObject({
      status: 'approved',
      decidedBy: 'system',
      scopes: ['db:write'],
      agentId: agent.id,
    })
  })

  it('leaves alone what an administrator gave', async () => {
    await logIn('a')
    await approve((await waiting())[0]?.id ?? '', { scopes: ['shop:read'] })
    expect((await logIn('a', { role: 'admin' })).held).toEqual(['db:write', 'shop:read'])
    expect((await logIn('a', {})).held).toEqual(['shop:read'])
    expect(await waiting()).toEqual([])
  })
})

describe('a claim', () => {
  it('gives the scopes that the administrator names, to the next login, with entries', async () => {
    const { agent } = await logIn('a')
    const [claim] = await waiting()
    const row = await approve(claim?.id ?? '', { scopes: ['db:read', 'db:read'], note: 'seen' })
    expect(row).toMatchObject({
      status: 'approved',
      scopes: ['db:read'],
      decidedBy: 'local',
      agentId: agent.id,
    })
    expect((await find(agent.name))?.expiresAt).toBe(test.core.store.now() + PLATFORM_AGENT_MS)
    expect((await logIn('a')).held).toEqual(['db:read'])
    for (const action of ['enrollment.approved', 'agent.scopes_changed'])
      expect(await test.audit(action)).toMatchObject([{ agentId: agent.id, scopes: ['db:read'] }])
    expect(await waiting()).toEqual([])
  })

  it('is not approved without scopes, with those of an enrollment, or twice', async () => {
    const { agent } = await logIn('a')
    const [{ id } = { id: '' }] = await waiting()
    for (const command of [
      {},
      { scopes: [] },
      { scopes: ['x'], replace: true },
      { scopes: ['x'], audiences: ['y'] },
    ])
      await expect(approve(id, command)).rejects.toMatchObject({ code: 'invalid_request' })
    expect((await find(agent.name))?.version).toBe(1)
    await approve(id, { scopes: ['x'] })
    await expect(approve(id, { scopes: ['x'] })).rejects.toMatchObject({ code: 'conflict' })
  })

  it('gives no scope that the approver does not hold, and says who may decide', async () => {
    await logIn('a')
    const items = await waiting()
    const { token } = await createAgent(test.core, LOCAL, {
      name: 'boss',
      scopes: ['admin:enrollments:*', 'db:read'],
    })
    const boss = await test.actor(token)
    const [{ id } = { id: '' }] = items
    expect((await judgePending(test.core, boss, items)).get(id)).toMatchObject({
      mayApprove: true,
      missingScopes: [],
    })
    await expect(approveEnrollment(test.core, boss, id, { scopes: ['db:write'] })).rejects.toMatchObject({
      code: 'insufficient_scope',
    })
    await approveEnrollment(test.core, boss, id, { scopes: ['db:read'] })
  })

  it('is listed again when what it was given has ended', async () => {
    await logIn('a')
    await approve((await waiting())[0]?.id ?? '', { scopes: ['x'], expires_in: '1h' })
    test.advance(2 * HOUR_MS)
    expect((await logIn('a')).held).toEqual([])
    expect(await waiting()).toMatchObject([
      { status: 'pending', scopes: [], decidedBy: null, metadata: { subject: 'a' } },
    ])
  })

  it('once rejected, is not listed again while its agent lives', async () => {
    const { agent } = await logIn('a')
    await rejectEnrollment(test.core, LOCAL, (await waiting())[0]?.id ?? '', { reason: 'unknown' })
    expect((await logIn('a')).held).toEqual([])
    expect(await waiting()).toEqual([])
    await deleteAgent(test.core, LOCAL, agent.name)
    await logIn('a')
    expect((await waiting()).length).toBe(1)
  })

  it('ends with its agent', async () => {
    const { agent } = await logIn('a')
    const [{ id } = { id: '' }] = await waiting()
    await deleteAgent(test.core, LOCAL, agent.name)
    expect(await waiting()).toEqual([])
    await expect(approve(id, { scopes: ['x'] })).rejects.toMatchObject({ code: 'gone' })
  })

  it('gives nothing to an agent that ends at the same moment', async () => {
    const { agent } = await logIn('a')
    const [{ id } = { id: '' }] = await waiting()
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'agent_grants'),
      () => deleteAgent(test.core, LOCAL, agent.name),
    )
    await expect(approve(id, { scopes: ['x'] })).rejects.toMatchObject({ code: 'gone' })
    expect(await test.core.store.agents.grantsOf(agent.id)).toEqual([])
  })

  it('expires when nobody decides in thirty days, and is listed again', async () => {
    await logIn('a')
    const until = test.core.store.now() + CLAIM_MS
    while (test.core.store.now() < until) {
      test.advance(20 * HOUR_MS)
      await expireEnrollments(test.core, test.core.store.now())
      await logIn('a')
    }
    expect(await test.audit('enrollment.expired')).toMatchObject([{ facts: { reason: 'undecided' } }])
    expect((await test.audit('enrollment.requested')).length).toBe(2)
    expect((await waiting()).length).toBe(1)
  })

  it('is none of the requests of its agent, and no room of enrollments', async () => {
    const { agent } = await logIn('a')
    expect(await test.core.store.enrollments.pendingOf(agent.id)).toEqual([])
    expect(await test.core.store.enrollments.countAmendments(9)).toBe(0)
    expect(await test.core.store.enrollments.pendingAddresses(9)).toEqual([])
    const client = test.core.callers.clientOf(agent, [], await test.core.store.generation())
    expect((await agentStatus(test.core, client.caller)).pendingRequests).toEqual([])
  })

  it('is decided by whoever gives the agent scopes', async () => {
    const { agent } = await logIn('a', { role: 'none' })
    await changeAgent(test.core, LOCAL, agent.name, { add_scopes: ['x', 'y'] })
    expect(await waiting()).toEqual([])
    expect((await logIn('a', { role: 'admin' })).held).toEqual(['db:write', 'x', 'y'])
    await expect(
      changeAgent(test.core, LOCAL, agent.name, { remove_scopes: ['db:write'] }),
    ).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(changeAgent(test.core, LOCAL, agent.name, { scopes: ['x'] })).rejects.toMatchObject({
      code: 'conflict',
    })
    await changeAgent(test.core, LOCAL, agent.name, { scopes: ['db:write', 'y', 'z'] })
    expect((await logIn('a', { role: 'admin' })).held).toEqual(['db:write', 'y', 'z'])
    await changeAgent(test.core, LOCAL, agent.name, { remove_scopes: ['y', 'z'] })
    expect((await logIn('a')).held).toEqual([])
  })
})

describe('the inbox', () => {
  it('holds so many claims of a platform; one more agent comes in unlisted, and those of others are counted apart', async () => {
    const store = test.core.store.enrollments
    await logIn('first')
    const [first] = await waiting()
    if (first === undefined) throw new Error('nothing waits')
    const full = Array.from({ length: MAX_PENDING_CLAIMS - 1 }, (_, at) => {
      const body = String(at)
        .padStart(12, 'a')
        .replaceAll(/[0189]/g, 'b')
      return store.insert({ ...first, id: test.core.ids.id('enrollment'), name: `acme-${body}` })
    })
    for (let at = 0; at < full.length; at += 200) await test.core.store.commit(full.slice(at, at + 200))
    const names = { from: 'acme-', to: 'acme.', length: 17 }
    expect(await store.countClaims(names, 5_000)).toBe(MAX_PENDING_CLAIMS)
    const unlisted = await logIn('one more')
    expect(unlisted.outcome.done).toBe(true)
    expect(await find(unlisted.agent.name)).toBeDefined()
    const listed = async () =>
      (await store.pendingOf(unlisted.agent.id)).length +
      ((await store.find(unlisted.agent.id.replace('ag_', 'enr_'))) === undefined ? 0 : 1)
    expect(await listed()).toBe(0)
    // `acme-two` begins with the same text.
    const other = await logIn('a', {}, platform('acme-two'))
    expect(await store.find(other.agent.id.replace('ag_', 'enr_'))).toMatchObject({ status: 'pending' })
    await rejectEnrollment(test.core, LOCAL, first.id, {})
    await logIn('one more')
    expect(await listed()).toBe(1)
  })
})

describe('unused agents', () => {
  const reap = () => reapAgents(test.core, new AbortController().signal)

  it('end a day after their last login without rights, with their claims', async () => {
    const { agent } = await logIn('a')
    test.advance(20 * HOUR_MS)
    await logIn('a')
    test.advance(20 * HOUR_MS)
    await reap()
    expect(await find(agent.name)).toBeDefined()
    test.advance(4 * HOUR_MS)
    await reap()
    expect(await find(agent.name)).toBeUndefined()
    expect(await waiting()).toEqual([])
    expect(await test.audit('agent.expired')).toMatchObject([{ agentName: agent.name }])
  })

  it('live for thirty days after their last login with rights', async () => {
    const { agent } = await logIn('a', { role: 'admin' })
    test.advance(20 * DAY_MS)
    await logIn('a', { role: 'admin' })
    test.advance(29 * DAY_MS)
    await reap()
    expect(await find(agent.name)).toBeDefined()
    test.advance(DAY_MS)
    await reap()
    expect(await find(agent.name)).toBeUndefined()
  })

  it('come back as new ones, without what they had', async () => {
    const { agent } = await logIn('a')
    await approve((await waiting())[0]?.id ?? '', { scopes: ['x'] })
    test.advance(PLATFORM_AGENT_MS)
    // The job has not come to it.
    const again = await logIn('a')
    expect(again).toMatchObject({ isNew: true, held: [], outcome: { done: true } })
    expect(again.agent.id).not.toBe(agent.id)
    expect((await waiting()).map(({ agentId }) => agentId)).toEqual([again.agent.id])
  })
})
