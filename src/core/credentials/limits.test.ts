import { expect, it } from 'vitest'
import { LOCAL, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { issueCredential } from './issue-credential.ts'

it('counts again after ten seconds, because other nodes may have issued more', async () => {
  const test = await testCore({ maxActivePerAgent: 4 })
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false)
  const { agent, token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['tok'] })
  const actor = await test.actor(token)
  const issue = () => issueCredential(core, actor, { backend: 'tok' })
  await issue()
  for (let other = 0; other < 3; other += 1) {
    await core.store.commit([core.store.credentials.insert(someCredential({ agentId: agent.id }))])
  }
  test.advance(10_001)
  await expect(issue()).rejects.toMatchObject({ code: 'rate_limited' })
  await test.close()
})
