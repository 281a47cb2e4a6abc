import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { anybodyFrom, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { compilePolicies, type PolicyEntry } from '../../config/policies.ts'
import { createAgent } from '../agents/create-agent.ts'
import { type EnrollCommand, enroll } from './enroll.ts'

const { publicKey } = newEnrollee()
const HOUR = 3_600_000
let test: TestCore
let addresses = 0

async function start(entries: PolicyEntry[] = [], settings = {}): Promise<void> {
  const policies = compilePolicies(entries, (fault) => {
    throw fault
  })
  test = await testCore({ policies, ...settings })
}

/** Each from its own network, so that only the policies limit them. */
function ask(name: string, more: Partial<EnrollCommand> = {}) {
  addresses += 1
  return enroll(test.core, anybodyFrom(`10.0.${addresses}.1`), { name, public_key: publicKey, ...more })
}

afterEach(() => test.close())

describe('policies', () => {
  const ci: PolicyEntry = {
    name: 'ci',
    pattern: 'ci-*',
    scopes: ['db:read', 'github:o/*'],
    auto_approve: true,
  }
  const first: PolicyEntry = { name: 'special', pattern: 'ci-special', scopes: ['x:y'], auto_approve: false }

  // All rules are in `domain/policy.test.ts`.
  const rows: [string, string, string[] | undefined, string[] | RegExp][] = [
    ['give no more than was requested', 'ci-1', ['github:o/r:read'], ['github:o/r:read']],
    ['do not give more scopes than they have', 'ci-1', ['db:read', 'db:write'], /does not grant/],
    ['decide when they are the first that matches', 'ci-special', undefined, /"special" leaves/],
  ]

  it.each(rows)('%s', async (_what, name, scopes, result) => {
    await start([first, ci])
    const row = await ask(name, { scopes })
    const agent = await test.core.store.agents.findByName(row.name)
    if (result instanceof RegExp) {
      expect(row.status).toBe('pending')
      expect(row.note).toMatch(result)
      expect(agent).toBeUndefined()
      expect(row.sealedAnswer).toBeNull()
    } else {
      expect(row.status).toBe('approved')
      expect(row.scopes).toEqual(result)
      expect(agent?.scopes).toEqual(result)
      expect(agent?.policy).toBe('ci')
    }
  })

  it('never gives an admin scope, even when the configuration check was skipped', async () => {
    const pattern = {
      name: 'p',
      pattern: '*',
      matches: () => true,
      scopes: ['admin:*'],
      autoApprove: true,
      deny: [],
    }
    test = await testCore({ policies: [pattern] })
    expect((await ask('a')).status).toBe('pending')
  })

  it('records the three steps of an approval and the properties of the agent', async () => {
    await start([{ ...ci, max_agent_lifetime: '1h' }])
    const row = await ask('ci-1', { metadata: { run: 7 } })
    const agent = await test.core.store.agents.findByName('ci-1')
    expect(agent).toMatchObject({
      id: row.agentId,
      createdBy: 'system',
    })
    expect(agent?.publicJwk).toEqual(publicKey)
    expect((agent?.expiresAt ?? 0) - (agent?.createdAt ?? 0)).toBe(HOUR)
    const entries = (await test.audit()).filter((one) => one.action !== 'auth.failed')
    expect(entries.map((one) => [one.action, one.actor])).toEqual([
      ['enrollment.requested', 'system'],
      ['enrollment.approved', 'system'],
      ['agent.created', 'system'],
    ])
    expect(entries.map((one) => one.facts['policy'])).toEqual(['ci', 'ci', 'ci'])
    expect(entries[0]?.metadata).toEqual({ run: 7 })
    expect(JSON.stringify([entries, row])).not.toMatch(/ck[rs]_/)
  })

  it('admits no more living agents than max_agents, also when many enroll at once', async () => {
    await start([{ ...ci, max_agents: 2 }])
    const asked = await Promise.all(['ci-1', 'ci-2', 'ci-3', 'ci-4', 'ci-5'].map((name) => ask(name)))
    expect(asked.map((row) => row.status).sort()).toEqual([
      'approved',
      'approved',
      'pending',
      'pending',
      'pending',
    ])
    expect(asked.find((row) => row.status === 'pending')?.note).toMatch(/maximum number of agents/)
    expect(await test.core.store.agents.countByPolicy('ci')).toBe(2)
  })

  it('approves no more often than its rate allows', async () => {
    await start([{ ...ci, rate: '2/hour' }])
    const statuses = []
    for (const name of ['ci-1', 'ci-2', 'ci-3']) statuses.push((await ask(name)).status)
    expect(statuses).toEqual(['approved', 'approved', 'pending'])
    test.advance(HOUR / 2)
    expect((await ask('ci-4')).status).toBe('approved')
  })

  it('leaves a name that gives no valid signing e-mail to the administrator', async () => {
    await start([ci], { signingDomain: `${'d'.repeat(60)}.${'d'.repeat(60)}.${'d'.repeat(20)}` })
    const row = await ask(`ci-${'x'.repeat(125)}`)
    expect(row).toMatchObject({ status: 'pending', note: expect.stringContaining('e-mail') })
  })

  it('proposes the scopes of the policy to the administrator when none were requested', async () => {
    await start([{ ...ci, auto_approve: false }])
    expect((await ask('ci-1')).scopes).toEqual(ci.scopes)
  })
})

describe('names', () => {
  beforeEach(() => start())

  it('leaves a reserved name pending, with a note', async () => {
    const note = expect.stringContaining('reserved')
    expect(await ask('OpenID')).toMatchObject({ status: 'pending', note })
  })

  it('leaves a taken name pending, with a note', async () => {
    await createAgent(test.core, LOCAL, { name: 'Bot' })
    expect(await ask('bot')).toMatchObject({
      status: 'pending',
      note: expect.stringContaining('already exists'),
    })
  })

  it('refuses one that is not well-formed, and stores nothing', async () => {
    await expect(ask('a b')).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await test.core.store.enrollments.list(undefined, undefined, 10)).toEqual([])
  })
})
