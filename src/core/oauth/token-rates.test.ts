import { afterAll, beforeAll, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { createAgent } from '../agents/create-agent.ts'
import { type AuthenticatedClient, authenticateClient } from './authenticate-client.ts'
import { issueToken } from './issue-token.ts'
import { revokeToken } from './revoke-token.ts'

let test: TestCore
beforeAll(async () => {
  test = await testCore({ tokensPerMinute: 3 })
  test.freeze()
})
afterAll(() => test.close())

async function newClient(name: string): Promise<AuthenticatedClient> {
  const { agent, clientSecret } = await createAgent(test.core, LOCAL, { name })
  return authenticateClient(test.core, { client_id: agent.clientId, client_secret: clientSecret }, ORIGIN)
}
const login = async (who: AuthenticatedClient) =>
  (await issueToken(test.core, who, { grant_type: 'client_credentials' })).accessToken
const revoke = (who: AuthenticatedClient, text: string) => revokeToken(test.core, who, text)

it('an agent gets and revokes only so many access tokens a minute, and hinders no other', async () => {
  const [busy, other] = [await newClient('busy'), await newClient('other')]
  const tokens = [await login(busy), await login(busy), await login(busy)]
  await expect(login(busy)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 20 })
  await login(other)
  for (const text of tokens) await revoke(busy, text)
  // Revoked already: there is nothing to do, so it does not count.
  for (const text of tokens) await revoke(busy, text)
  test.advance(20_000)
  const fourth = await login(busy)
  await revoke(busy, fourth)
  test.advance(20_000)
  const fifth = await login(busy)
  await revoke(busy, fifth)
  expect((await test.audit('token.revoked')).length).toBe(5)
  expect(await test.audit('token.refused')).toMatchObject([
    { agentName: 'busy', facts: { code: 'rate_limited' } },
  ])
})

it('an agent that revokes too often is told when to come back, and its token lives until then', async () => {
  const who = await newClient('hasty')
  const tokens = [await login(who), await login(who), await login(who)]
  test.advance(20_000)
  const last = await login(who)
  for (const text of tokens) await revoke(who, text)
  await expect(revoke(who, last)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 20 })
  await test.actor(last)
  test.advance(20_000)
  await revoke(who, last)
  await expect(test.actor(last)).rejects.toThrow('no such agent')
})
