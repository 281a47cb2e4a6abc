import { afterEach, describe, expect, it } from 'vitest'
import { anybodyFrom, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { platform } from '../../../test/support/identity-tokens.ts'
import { entry, template } from '../../../test/support/keyless.ts'
import { compilePolicies, type PolicyEntry } from '../../config/policies.ts'
import { createAgent } from '../agents/create-agent.ts'
import { enroll } from './enroll.ts'
import { explainPolicy } from './explain-policy.ts'

const CI: PolicyEntry = { name: 'ci', pattern: 'ci-*', scopes: ['db'], auto_approve: true }
const SUFFIXED = /^ci-1-[0-9a-hjkmnp-tv-z]{8}$/
let test: TestCore
afterEach(() => test.close())

async function start(policy: Partial<PolicyEntry> = {}): Promise<void> {
  const policies = compilePolicies([{ ...CI, ...policy }], (fault) => {
    throw fault
  })
  test = await testCore({ policies })
}
const ask = (name: string) =>
  enroll(test.core, anybodyFrom('192.0.2.1'), { name, public_key: newEnrollee().publicKey })
const agentOf = async ({ agentId }: { agentId: string | null }) =>
  test.core.store.agents.findLiving(agentId ?? '')

describe('a name that a policy approves', () => {
  it('gets a suffix if it is taken, ignoring case', async () => {
    await start()
    await createAgent(test.core, LOCAL, { name: 'CI-1' })
    const enrollment = await ask('ci-1')
    expect(enrollment).toMatchObject({ status: 'approved', name: 'ci-1', scopes: ['db'] })
    const agent = await agentOf(enrollment)
    expect(agent?.name).toMatch(SUFFIXED)
    expect(agent).toMatchObject({ policy: 'ci', signingEmail: `${agent?.name}@mayfly.test` })
    expect((await test.audit('agent.created')).at(-1)?.agentName).toBe(agent?.name)
    const answer = test.core.sealer.open(
      'enrollments',
      enrollment.id,
      'answer',
      enrollment.sealedAnswer ?? '',
    )
    expect(JSON.parse(answer)).toMatchObject({ agent_name: agent?.name })
  })

  it('always gets one where the policy says so, so that not even its agent learns whether it was free', async () => {
    await start({ suffix: true })
    const names = []
    for (let n = 0; n < 3; n += 1) names.push((await agentOf(await ask('ci-1')))?.name)
    for (const name of names) expect(name).toMatch(SUFFIXED)
    expect(new Set(names).size).toBe(3)
  })

  it('is shortened for the suffix, and stays a name', async () => {
    await start({ suffix: true })
    const agent = await agentOf(await ask(`ci-${'x'.repeat(60)}`))
    expect(agent?.name).toMatch(/^ci-x{60}-[0-9a-z]{8}$/)
  })

  it('is approved with a suffix when it is taken just before the commit', async () => {
    await start()
    test.before(
      (change) => change.some((step) => step.op === 'insert' && step.table === 'enrollments'),
      () => createAgent(test.core, LOCAL, { name: 'CI-1' }),
    )
    expect((await agentOf(await ask('ci-1')))?.name).toMatch(SUFFIXED)
  })

  it('takes the same work and gets the same answer whether or not it is taken', async () => {
    await start()
    await createAgent(test.core, LOCAL, { name: 'ci-taken' })
    const seen = []
    const { store } = test.core
    const { commit } = store
    const { findByName } = store.agents
    for (const name of ['ci-free1', 'ci-taken']) {
      const work: string[] = []
      store.commit = (change, options) => {
        work.push(`commit of ${change.map((step) => (step.op === 'insert' ? step.table : step.op)).join()}`)
        return commit(change, options)
      }
      store.agents.findByName = (one) => {
        work.push('look-up')
        return findByName(one)
      }
      const { status, expiresAt, createdAt, collectUntil } = await ask(name)
      seen.push({ work, status, life: expiresAt - createdAt, collected: collectUntil !== null })
    }
    store.commit = commit
    store.agents.findByName = findByName
    expect(seen[1]).toEqual(seen[0])
  })

  it('is explained as approved, taken or not', async () => {
    await start()
    await createAgent(test.core, LOCAL, { name: 'ci-1' })
    expect(await explainPolicy(test.core, { name: 'ci-1' })).toMatchObject({
      decision: 'approve',
      reason: '',
    })
  })

  it('waits if an entry of identities gives it, also with the suffix', async () => {
    await start({ pattern: '*', suffix: true })
    const held = entry('ci', { agent: template('ci-{run_id}') })
    test.core.identities.setTrusted({ identities: [held], platforms: [platform('bots')] })
    for (const name of ['CI-1', 'ci', 'bots-7', 'bots']) {
      const { status, note, agentId } = await ask(name)
      expect([name, status, agentId]).toEqual([name, 'pending', null])
      expect(note).toContain(name.toLowerCase().startsWith('ci') ? '"ci"' : '"bots"')
    }
    expect((await ask('other')).status).toBe('approved')
  })

  it('waits in spite of the suffix if it is reserved, or the policy is full', async () => {
    await start({ pattern: '*', max_agents: 1 })
    expect((await ask('system')).status).toBe('pending')
    expect((await ask('ci-1')).status).toBe('approved')
    expect((await ask('ci-1')).status).toBe('pending')
  })
})

it('gives an agent that a policy approves the audiences of the policy', async () => {
  await start({ audiences: ['sts.example', 'sts.example'] })
  expect((await agentOf(await ask('ci-1')))?.audiences).toEqual(['sts.example'])
  expect((await test.audit('agent.created'))[0]?.facts).toMatchObject({ audiences: ['sts.example'] })
})
