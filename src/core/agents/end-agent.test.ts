import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { createAgent } from './create-agent.ts'
import { deleteAgent, deleteSelf } from './end-agent.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
})
afterEach(() => test.close())

it('does not end another agent that took the name while this one was deleting itself', async () => {
  const create = () => createAgent(test.core, LOCAL, { name: 'bot' }, ORIGIN)
  const caller = await test.caller((await create()).token)
  await deleteAgent(test.core, LOCAL, 'bot', ORIGIN)
  const { agent } = await create()
  await expect(deleteSelf(test.core, caller, ORIGIN)).rejects.toMatchObject({ code: 'unauthorized' })
  expect((await test.core.store.agents.findByName('bot'))?.id).toBe(agent.id)
})
