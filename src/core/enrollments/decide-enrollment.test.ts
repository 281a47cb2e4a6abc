import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ANYBODY, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { DAY_MS, HOUR_MS } from '../../domain/limits.ts'
import { createAgent } from '../agents/create-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { approveEnrollment } from './approve-enrollment.ts'
import { enroll } from './enroll.ts'
import { expireEnrollments } from './expire-enrollments.ts'
import { listPending } from './list-pending.ts'
import { rejectEnrollment } from './reject-enrollment.ts'
import { requestScopes } from './request-scopes.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore({ enrollmentsPerMinute: 1_000 })
})
afterEach(() => test.close())

const { publicKey } = newEnrollee()
const ask = (name = 'bot', scopes: string[] = ['db:read']) =>
  enroll(test.core, ANYBODY, { name, scopes, public_key: publicKey })
const approve = (id: string, command = {}, actor: Parameters<typeof approveEnrollment>[1] = LOCAL) =>
  approveEnrollment(test.core, actor, id, command)
const reject = (id: string, command = {}) => rejectEnrollment(test.core, LOCAL, id, command)
const agent = async (name: string, scopes: string[]) => {
  const { token } = await createAgent(test.core, LOCAL, { name, scopes })
  return { token, actor: () => test.actor(token) }
}

describe('approving', () => {
  it('creates the agent as requested, and seals its secrets', async () => {
    const row = await approve((await ask()).id, { note: 'fine' })
    const made = await test.core.store.agents.findByName('bot')
    expect(row).toMatchObject({
      status: 'approved',
      agentId: made?.id,
      decidedBy: 'local',
      decisionNote: 'fine',
    })
    expect(made).toMatchObject({ scopes: ['db:read'], expiresAt: null, policy: null, createdBy: 'local' })
    expect(row.sealedAnswer).toMatch(/^s1\./)
    expect((await test.audit('enrollment.approved'))[0]?.facts).toMatchObject({ enrollment_id: row.id })
    expect((await test.audit('agent.created')).length).toBe(1)
  })

  it('writes the note for administrators into no entry, which the agent would read', async () => {
    const row = await approve((await ask()).id, { note: 'for administrators' })
    const entries = await test.core.store.audit.query({ agentId: row.agentId ?? '' }, 100)
    expect(JSON.stringify(entries)).toContain('enrollment.approved')
    expect(JSON.stringify(entries)).not.toContain('for administrators')
  })

  it('uses the scopes and the lifetime that the administrator chooses', async () => {
    const { id } = await ask()
    const row = await approve(id, { scopes: ['db:read:x', 'other:y'], expires_in: '1h30m' })
    const made = await test.core.store.agents.findByName('bot')
    expect(row.scopes).toEqual(['db:read:x', 'other:y'])
    expect(made?.scopes).toEqual(row.scopes)
    expect((made?.expiresAt ?? 0) - (made?.createdAt ?? 0)).toBe(1.5 * HOUR_MS)
  })

  it('grants no scope that the approver does not hold', async () => {
    const admin = await agent('boss', ['admin:enrollments:*', 'db:read'])
    const actor = await admin.actor()
    for (const scopes of [['db'], ['db:write'], ['*'], ['admin:*'], ['admin:agents:read']]) {
      const { id } = await ask(`bot${scopes[0]?.length}`, scopes)
      await expect(approve(id, {}, actor)).rejects.toMatchObject({
        code: 'insufficient_scope',
        scope: scopes[0],
      })
      await expect(approve(id, { scopes: ['db:read', ...scopes] }, actor)).rejects.toMatchObject({
        code: 'insufficient_scope',
      })
    }
    expect((await approve((await ask()).id, {}, actor)).decidedBy).toBe(actor.caller.agentId)
    expect((await test.audit('agent.created')).length).toBe(2)
  })

  it('answers a second decision with a conflict', async () => {
    const [one, two] = [await ask('one'), await ask('two')]
    await approve(one.id)
    await reject(two.id)
    for (const { id } of [one, two]) {
      await expect(approve(id)).rejects.toMatchObject({ code: 'conflict' })
      await expect(reject(id)).rejects.toMatchObject({ code: 'conflict' })
    }
  })

  it('accepts one of several decisions at once', async () => {
    const { id } = await ask()
    const all = await Promise.allSettled([approve(id), approve(id), reject(id)])
    const failed = all.filter((one) => one.status === 'rejected')
    expect(failed.length).toBe(2)
    for (const one of failed) expect(one.reason).toMatchObject({ code: 'conflict' })
    const entries = (await test.audit()).filter((one) => /enrollment\.(approved|rejected)/.test(one.action))
    expect(entries.length).toBe(1)
  })

  it('creates no agent when another decision comes first', async () => {
    const { id } = await ask()
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'agents'),
      () => reject(id),
    )
    await expect(approve(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/already been decided/),
    })
    expect(await test.core.store.agents.findByName('bot')).toBeUndefined()
  })

  it('tells the administrator that the name is taken, and stays pending', async () => {
    const { id } = await ask()
    await agent('Bot', [])
    await expect(approve(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/name already exists/),
    })
    await deleteAgent(test.core, LOCAL, 'bot')
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'agents'),
      () => agent('bot', []),
    )
    await expect(approve(id)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringMatching(/name already exists/),
    })
    await deleteAgent(test.core, LOCAL, 'bot')
    expect((await approve(id)).status).toBe('approved')
  })

  it('never approves a reserved name', async () => {
    const { id } = await ask('admin')
    await expect(approve(id)).rejects.toMatchObject({ code: 'conflict' })
  })

  it('does not know other ids', async () => {
    const ids = ['enr_', '', 'enr_00000000000000000000000000', 'cred_00000000000000000000000000', '../x']
    for (const id of ids) {
      await expect(approve(id)).rejects.toMatchObject({ code: 'enrollment_not_found' })
      await expect(reject(id)).rejects.toMatchObject({ code: 'enrollment_not_found' })
    }
  })

  it('is refused after a day, before and after the job has run', async () => {
    const { id } = await ask()
    test.advance(DAY_MS)
    await expect(approve(id)).rejects.toMatchObject({ code: 'gone' })
    expect((await listPending(test.core, {})).items).toEqual([])
    expect(await expireEnrollments(test.core, test.core.store.now())).toBe(1)
    await expect(approve(id)).rejects.toMatchObject({ code: 'gone' })
    await expect(reject(id)).rejects.toMatchObject({ code: 'gone' })
    expect((await listPending(test.core, { status: 'expired' })).items.map((row) => row.id)).toEqual([id])
    expect((await test.audit('enrollment.expired')).map((one) => one.facts['reason'])).toEqual(['undecided'])
    expect(await expireEnrollments(test.core, test.core.store.now())).toBe(0)
  })
})

describe('asking for more', () => {
  it('adds the scopes permanently, or for the lifetime that was decided', async () => {
    const bot = await agent('bot', ['db:read'])
    const before = await bot.actor()
    const lasting = { scopes: ['db:write'], reason: 'migration' }
    const forGood = await requestScopes(test.core, before, lasting)
    expect((await bot.actor()).caller.scopes).toEqual(['db:read'])
    await approve(forGood.id)
    const between = await bot.actor()
    expect(between.caller.scopes).toEqual(['db:read', 'db:write'])
    expect(between.caller.version).toBeGreaterThan(before.caller.version)
    const boxed = { scopes: ['admin:keys:read'], expires_in: '2h' }
    const asked = await requestScopes(test.core, between, boxed)
    await approve(asked.id, { expires_in: '1h' })
    expect((await bot.actor()).caller.scopes).toEqual(['db:read', 'db:write', 'admin:keys:read'])

    test.advance(HOUR_MS)
    expect((await bot.actor()).caller.scopes).toEqual(['db:read', 'db:write'])
    const version = (await bot.actor()).caller.version
    expect(await expireEnrollments(test.core, test.core.store.now())).toBe(1)
    expect((await bot.actor()).caller.version).toBeGreaterThan(version)
    expect(await test.core.store.agents.grantsOf(before.caller.agentId)).toHaveLength(1)
    const changes = await test.audit('agent.scopes_changed')
    expect(changes.map((one) => [one.agentName, one.scopes, one.facts['change']])).toEqual([
      ['bot', ['db:write'], 'added'],
      ['bot', ['admin:keys:read'], 'added'],
      ['bot', ['admin:keys:read'], 'expired'],
    ])
  })

  it('uses the requested lifetime when the administrator gives none', async () => {
    const bot = await agent('bot', [])
    const row = await requestScopes(test.core, await bot.actor(), { scopes: ['a:b'], expires_in: '10m' })
    await approve(row.id)
    const [grant] = await test.core.store.agents.grantsOf(row.agentId ?? '')
    expect((grant?.expiresAt ?? 0) - (grant?.createdAt ?? 0)).toBe(600_000)
  })

  it('is refused when the approver does not hold the scopes', async () => {
    const bot = await agent('bot', ['admin:enrollments:write'])
    const row = await requestScopes(test.core, await bot.actor(), { scopes: ['admin:*'] })
    await expect(approve(row.id, {}, await bot.actor())).rejects.toMatchObject({
      code: 'insufficient_scope',
    })
  })

  it('is no longer possible once the agent has ended', async () => {
    const bot = await agent('bot', [])
    const actor = await bot.actor()
    const row = await requestScopes(test.core, actor, { scopes: ['a:b'] })
    const race = await requestScopes(test.core, actor, { scopes: ['a:c'] })
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'agent_grants'),
      () => deleteAgent(test.core, LOCAL, 'bot'),
    )
    await expect(approve(race.id)).rejects.toMatchObject({ code: 'gone' })
    await expect(approve(row.id)).rejects.toMatchObject({ code: 'gone' })
    await expect(requestScopes(test.core, actor, { scopes: ['a:b'] })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  it('is limited to ten waiting requests of one agent', async () => {
    const bot = await agent('bot', [])
    const actor = await bot.actor()
    for (let count = 0; count < 10; count += 1) await requestScopes(test.core, actor, { scopes: ['a:b'] })
    await expect(requestScopes(test.core, actor, { scopes: ['a:b'] })).rejects.toMatchObject({
      code: 'rate_limited',
    })
  })
})

describe('listing', () => {
  it('pages through enrollments by status, oldest first', async () => {
    const rows = [await ask('a'), await ask('b'), await ask('c')]
    const one = await listPending(test.core, { limit: 2 })
    expect(one.items.map((row) => row.name)).toEqual(['a', 'b'])
    const two = await listPending(test.core, { limit: 2, cursor: one.next })
    expect(two.items.map((row) => row.name)).toEqual(['c'])
    expect(two.next).toBeUndefined()
    await reject(rows[1]?.id ?? '', { reason: 'unknown machine' })
    expect((await listPending(test.core, {})).items.map((row) => row.name)).toEqual(['a', 'c'])
    const rejected = await listPending(test.core, { status: 'rejected' })
    expect(rejected.items).toMatchObject([{ name: 'b', decisionNote: 'unknown machine', decidedBy: 'local' }])
  })
})
