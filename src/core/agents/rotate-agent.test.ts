import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { compilePolicies } from '../../config/policies.ts'
import type { Change } from '../../store/engine/change.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import { revokeCredential } from '../credentials/revoke-credential.ts'
import { enroll } from '../enrollments/enroll.ts'
import { authenticateClient } from '../oauth/authenticate-client.ts'
import { issueToken } from '../oauth/issue-token.ts'
import { revokeToken } from '../oauth/revoke-token.ts'
import { changeAgent } from './change-agent.ts'
import { type CreatedAgent, createAgent } from './create-agent.ts'
import { rotateAgent } from './rotate-agent.ts'

let test: TestCore
let made: CreatedAgent
const CI = {
  name: 'ci',
  pattern: 'ci-*',
  scopes: ['admin:agents:write', 'db'],
  max_ttl: '10m',
  max_active: 3,
}
beforeEach(async () => {
  const policies = compilePolicies([CI], (fault) => {
    throw fault
  })
  test = await testCore({ policies })
  await createBackend(test.core, LOCAL, { type: 'jwt', name: 'db', config: { audience: 'x' } }, false)
  made = await createAgent(test.core, LOCAL, { name: 'bot', scopes: ['db'] })
})
afterEach(() => test.close())

const rotate = (grace?: string) => rotateAgent(test.core, LOCAL, 'bot', { grace })
const secret = ({ agent, clientSecret }: CreatedAgent) => ({
  client_id: agent.clientId,
  client_secret: clientSecret,
})
const logIn = (of = made) => authenticateClient(test.core, secret(of), ORIGIN)
const token = async (of = made) =>
  (await issueToken(test.core, await logIn(of), { grant_type: 'client_credentials' })).accessToken
const isRotation = (change: Change) =>
  change.some((step) => step.op === 'run' && step.sql.includes('"bearer_hash" ='))
/** Runs the race just before the next commit that is not the rotation itself. */
const beforeCommit = (race: () => Promise<unknown>) => test.before((change) => !isRotation(change), race)

describe('secrets that are replaced between the admission of a request and its commit', () => {
  const bearers: [string, () => Promise<string>][] = [
    ['the permanent token', async () => made.token],
    ['an access token', () => token()],
  ]

  it.each(bearers)('issue nothing: %s', async (_, bearer) => {
    const actor = await test.actor(await bearer())
    beforeCommit(() => rotate())
    await expect(issueCredential(test.core, actor, { backend: 'db' })).rejects.toMatchObject({
      code: 'unauthorized',
    })
    expect(await test.audit('credential.issued')).toEqual([])
  })

  it.each(bearers)('end nothing: %s', async (_, bearer) => {
    const actor = await test.actor(await bearer())
    const { id } = await issueCredential(test.core, actor, { backend: 'db' })
    beforeCommit(() => rotate())
    await expect(revokeCredential(test.core, actor, id)).rejects.toMatchObject({ code: 'unauthorized' })
    expect((await test.core.store.credentials.find(id))?.state).toBe('active')
  })

  it.each(bearers)('work during the grace: %s', async (_, bearer) => {
    const actor = await test.actor(await bearer())
    beforeCommit(() => rotate('1m'))
    const { id } = await issueCredential(test.core, actor, { backend: 'db' })
    await revokeCredential(test.core, actor, id)
    test.advance(60_000)
    await expect(issueCredential(test.core, actor, { backend: 'db' })).rejects.toMatchObject({
      code: 'unauthorized',
    })
  })

  it('get no access token', async () => {
    const who = await logIn()
    beforeCommit(() => rotate())
    await expect(issueToken(test.core, who, { grant_type: 'client_credentials' })).rejects.toMatchObject({
      code: 'invalid_client',
    })
    expect(await test.audit('token.issued')).toEqual([])
  })

  it('get one that ends with the grace', async () => {
    test.freeze()
    const who = await logIn()
    beforeCommit(() => rotate('1m'))
    const issued = await issueToken(test.core, who, { grant_type: 'client_credentials' })
    expect(issued.expiresIn).toBe(60)
    test.advance(59_999)
    await test.actor(issued.accessToken)
    test.advance(1)
    await expect(test.actor(issued.accessToken)).rejects.toThrow('no such agent')
  })

  it('are not refused for another change of the agent', async () => {
    const actor = await test.actor(made.token)
    const { id } = await issueCredential(test.core, actor, { backend: 'db' })
    beforeCommit(() => test.core.store.commit(test.core.store.agents.touch(made.agent.id)))
    await revokeCredential(test.core, actor, id)
    expect((await test.core.store.credentials.find(id))?.state).toBe('revoked')
  })
})

it('of two rotations at once, each replaces what the other made, and only the last secrets work', async () => {
  let first: CreatedAgent | undefined
  test.before(isRotation, async () => {
    first = await rotate()
  })
  const second = await rotate()
  await expect(test.actor(first?.token ?? '')).rejects.toThrow('no such agent')
  await test.actor(second.token)
  expect(second.agent.rotation).toBe(2)
})

it('leaves a change of its own agent without a shared lock on the row that it writes', async () => {
  let seen: Change = []
  test.before((change) => {
    seen = change
    return false
  }, rotate)
  const text = await token()
  await revokeToken(test.core, await logIn(), text)
  expect(seen.map(({ op }) => op)).not.toContain('guard')
})

it('replaces nothing when the store does not take the change', async () => {
  const { commit } = test.core.store
  test.core.store.commit = async () => {
    throw new Error('the disk is gone')
  }
  await expect(rotate()).rejects.toThrow('the disk is gone')
  test.core.store.commit = commit
  await test.actor(made.token)
})

it('leaves an enrolled key as a login', async () => {
  const enrollee = newEnrollee()
  const policies = compilePolicies([{ ...CI, scopes: ['db'], auto_approve: true }], (fault) => {
    throw fault
  })
  await test.close()
  test = await testCore({ policies })
  await enroll(
    test.core,
    { caller: undefined, origin: ORIGIN },
    { name: 'ci-1', public_key: enrollee.publicKey },
  )
  await rotateAgent(test.core, LOCAL, 'ci-1', {})
  const agent = await test.core.store.agents.findByName('ci-1')
  expect(agent).toMatchObject({ publicJwk: enrollee.publicKey, rotation: 1 })
})

it('does not let an agent with bounds take over one without, or give to it', async () => {
  const scopes = ['admin:agents:write', 'db']
  const bounded = await createAgent(test.core, LOCAL, { name: 'bounded', scopes })
  await test.core.store.commit([
    {
      op: 'run',
      sql: 'UPDATE agents SET bounds = ?, version = version + 1 WHERE id = ?',
      params: [JSON.stringify({ maxTtlMs: 600_000 }), bounded.agent.id],
      rows: 1,
    },
  ])
  const actor = await test.actor(bounded.token)
  await expect(rotateAgent(test.core, actor, 'bot', {})).rejects.toMatchObject({
    code: 'insufficient_scope',
    message: expect.stringContaining('may have more credentials'),
  })
  for (const changes of [
    { add_scopes: ['db', 'admin:agents:write'] },
    { add_scopes: ['admin:agents:write'] },
  ])
    await expect(changeAgent(test.core, actor, 'bot', changes)).rejects.toMatchObject({
      code: 'insufficient_scope',
    })
  await changeAgent(test.core, actor, 'bot', { remove_scopes: ['db'] })
  await createAgent(test.core, actor, { name: 'child', scopes: ['db'] })
  await changeAgent(test.core, actor, 'child', { add_scopes: ['admin:agents:write'] })
  await rotateAgent(test.core, actor, 'child', {})
})
