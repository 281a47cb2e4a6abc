import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { entry, JWT_BEARER, template, workload } from '../../../test/support/keyless.ts'
import type { Identity } from '../../domain/identity/identity.ts'
import type { Change } from '../../store/engine/change.ts'
import { changeAgent } from '../agents/change-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { reapAgents } from '../agents/reap-agents.ts'
import { endLogin } from '../identities/end-login.ts'
import { exchangeToken } from './exchange-token.ts'

let test: TestCore
afterEach(() => test.close())

async function start(more: Partial<Identity> = {}, tokensPerMinute = 600): Promise<void> {
  test = await testCore({ tokensPerMinute })
  test.freeze()
  const one = entry('ci', { agent: template('ci-{run_id}'), scopes: ['db'], ...more })
  test.core.identities.setTrusted({ identities: [one], platforms: [] })
}
const token = (claims = {}) => workload(test, { run_id: '1', ...claims })
const logIn = (assertion: string, more = {}) =>
  exchangeToken(test.core, { grant_type: JWT_BEARER, assertion, ...more }, ORIGIN)
const isLogin = (change: Change) => change.some((step) => step.op === 'insert' && step.table === 'logins')

describe('the commit of a login', () => {
  it('leaves nothing when it fails, not even the use of the token', async () => {
    await start()
    const presented = token()
    test.before(isLogin, () => Promise.reject(new Error('the disk is gone')))
    await expect(logIn(presented)).rejects.toThrow('the disk is gone')
    expect(await test.core.store.agents.findByName('ci-1')).toBeUndefined()
    expect(await test.audit('agent.created')).toEqual([])
    expect((await logIn(presented)).scope).toBe('db')
    await expect(logIn(presented)).rejects.toMatchObject({ code: 'invalid_grant' })
  })

  it('is one for the agent, the use, the login and the entries', async () => {
    await start()
    const commits: Change[] = []
    test.before(
      (change) => {
        commits.push(change)
        return false
      },
      async () => undefined,
    )
    await logIn(token())
    expect(commits).toHaveLength(1)
    const tables = (commits[0] ?? []).map((step) => (step.op === 'insert' ? step.table : step.op))
    expect(tables).toEqual(['agents', 'audit', 'used_proofs', 'logins', 'audit'])
  })

  it('decides again when the agent ends meanwhile', async () => {
    await start()
    await logIn(token())
    const before = await test.core.store.agents.findByName('ci-1')
    test.before(isLogin, () => deleteAgent(test.core, LOCAL, 'ci-1'))
    await logIn(token())
    const after = await test.core.store.agents.findByName('ci-1')
    expect(after?.id).not.toBe(before?.id)
    expect(after).toMatchObject({ endedAt: null, identityValues: ['https://issuer.test', '1'] })
  })

  it('finds that the token was used meanwhile', async () => {
    await start()
    const presented = token()
    test.before(isLogin, () => logIn(presented))
    await expect(logIn(presented)).rejects.toMatchObject({ code: 'invalid_grant' })
    expect(await test.audit('token.issued')).toHaveLength(1)
  })
})

describe('the end of a login', () => {
  it('leaves the agent when another login begins meanwhile', async () => {
    await start()
    const { accessToken } = await logIn(token())
    test.before(
      (change) => !isLogin(change),
      () => logIn(token()),
    )
    await endLogin(test.core, await test.actor(accessToken))
    expect(await test.core.store.agents.findByName('ci-1')).toMatchObject({ endedAt: null })
    await expect(test.actor(accessToken)).rejects.toThrow('no such agent')
  })

  it('ends the agent when the other login ends meanwhile', async () => {
    await start()
    const [one, two] = [await logIn(token()), await logIn(token())]
    const [first, second] = [await test.actor(one.accessToken), await test.actor(two.accessToken)]
    test.before(
      () => true,
      () => endLogin(test.core, second),
    )
    await endLogin(test.core, first)
    expect(await test.core.store.agents.findByName('ci-1')).toBeUndefined()
    expect(await test.audit('agent.deleted')).toMatchObject([{ facts: { reason: 'logged_out' } }])
  })
})

it('from the third login on an agent is not read again until it changes', async () => {
  await start()
  const { agents } = test.core.store
  const { findByName } = agents
  let read = 0
  agents.findByName = (name) => {
    read += 1
    return findByName(name)
  }
  for (let count = 0; count < 4; count += 1) await logIn(token())
  expect(read).toBe(2)
  await changeAgent(test.core, LOCAL, 'ci-1', { expires_in: '2h' })
  const before = read
  await logIn(token())
  expect(read).toBe(before + 1)
  // The same name in another case is of other values.
  await expect(logIn(token({ run_id: 'A' }))).resolves.toMatchObject({ scope: 'db' })
  await logIn(token({ run_id: 'A' }))
  await expect(logIn(token({ run_id: 'a' }))).rejects.toMatchObject({ code: 'invalid_grant' })
  await deleteAgent(test.core, LOCAL, 'ci-1')
  await logIn(token())
  expect(await test.audit('agent.created')).toMatchObject([
    { agentName: 'ci-1' },
    { agentName: 'ci-A' },
    { agentName: 'ci-1' },
  ])
})

it('without a console a refusal names no page', async () => {
  test = await testCore({ console: 'off' })
  const refused = await logIn(token()).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'invalid_grant', uri: undefined })
})

it('an agent that nobody logs in as any more ends as others do', async () => {
  await start()
  const { accessToken } = await logIn(token())
  test.advance(3_600_000)
  await reapAgents(test.core, new AbortController().signal)
  expect(await test.core.store.agents.findByName('ci-1')).toBeUndefined()
  expect(await test.audit('agent.expired')).toMatchObject([{ agentName: 'ci-1', actor: 'system' }])
  await expect(test.actor(accessToken)).rejects.toThrow('no such agent')
})

it('a denial names no agent that there is not', async () => {
  await start()
  await expect(logIn(token(), { scope: 'other' })).rejects.toMatchObject({ code: 'invalid_scope' })
  await logIn(token())
  await expect(logIn(token(), { scope: 'other' })).rejects.toMatchObject({ code: 'invalid_scope' })
  const agent = await test.core.store.agents.findByName('ci-1')
  await expect
    .poll(() => test.audit('token.refused'))
    .toMatchObject([
      { agentId: null, facts: { code: 'invalid_scope', identity: 'ci', subject: 'job' } },
      { agentId: agent?.id, facts: { code: 'invalid_scope', identity: 'ci' } },
    ])
})

it.each(['share', 'suffix'] as const)(
  'logins of one workload are limited, and hinder no other (%s)',
  async (concurrent) => {
    await start({ concurrent }, 1)
    for (let count = 0; count < 10; count += 1) await logIn(token())
    await expect(logIn(token())).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 6 })
    await logIn(token({ run_id: '2' }))
  },
)

it.each([
  ['ten minutes after the presented one, of 300 s', {}, 900],
  ['when the entry says', { tokenTtlMs: 1_200_000 }, 1_200],
  ['with the agent', { tokenTtlMs: 7_200_000 }, 3_600],
  ['with an agent that lives shorter', { agentTtlMs: 60_000 }, 60],
])('the access token ends %s', async (_when, more, seconds) => {
  await start(more)
  const { expiresIn } = await logIn(token())
  // The presented token says its end in whole seconds.
  expect([seconds - 1, seconds]).toContain(expiresIn)
})
