import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import { createAgent } from './create-agent.ts'
import { deleteAgent, deleteSelf } from './end-agent.ts'
import { finishEnds } from './finish-ends.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
})
afterEach(() => test.close())

it('does not end another agent that took the name while this one was deleting itself', async () => {
  const create = () => createAgent(test.core, LOCAL, { name: 'bot' })
  const actor = await test.actor((await create()).token)
  await deleteAgent(test.core, LOCAL, 'bot')
  const { agent } = await create()
  await expect(deleteSelf(test.core, actor)).rejects.toMatchObject({ code: 'unauthorized' })
  expect((await test.core.store.agents.findByName('bot'))?.id).toBe(agent.id)
})

it('ends few credentials in the change that ends the agent, and very many of them after it', async () => {
  const { store } = test.core
  for (const count of [store.endSlice, store.endSlice + 1]) {
    const { agent } = await createAgent(test.core, LOCAL, { name: 'bot' })
    const expiresAt = store.now() + 600_000
    const credentials = Array.from({ length: count }, () =>
      someCredential({ agentId: agent.id, expiresAt, dueAt: expiresAt }),
    )
    await store.commit(credentials.map(store.credentials.insert))
    await deleteAgent(test.core, LOCAL, 'bot')
    const hasMany = count > store.endSlice
    expect(await store.credentials.countLiving(agent.id, 1_000)).toBe(hasMany ? count : 0)
    expect(await store.agents.unfinishedEnds(10)).toHaveLength(hasMany ? 1 : 0)
    await finishEnds(test.core, new AbortController().signal)
    expect(await store.credentials.countLiving(agent.id, 1_000)).toBe(0)
    const entries = await store.audit.query({ agentId: agent.id, action: 'credential.revoked' }, 1_000)
    expect(entries).toHaveLength(count)
    for (const entry of entries)
      expect(entry).toMatchObject({
        actor: 'local',
        requestId: ORIGIN.requestId,
        details: { reason: 'agent_deleted' },
      })
  }
})
