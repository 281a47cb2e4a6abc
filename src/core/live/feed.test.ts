import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { createAgent } from '../agents/create-agent.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
})
afterEach(() => test.close())

it('tells a new stream of what appears before the first look, and of nothing before that', async () => {
  const { core } = test
  await createAgent(core, LOCAL, { name: 'before' })
  // Ids of one millisecond have no order.
  test.advance(5)
  const seen: (string | null)[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  // Holds the first look up, as a busy machine does.
  const { horizon } = core.store.audit
  const audit = core.store.audit as { horizon: typeof horizon }
  audit.horizon = async () => {
    audit.horizon = horizon
    await createAgent(core, LOCAL, { name: 'meanwhile' })
    return horizon()
  }
  const follower = core.feed.join({ caller: LOCAL.caller, bearer: undefined }, undefined, undefined, {
    entries: (placed) => {
      seen.push(...placed.map(({ entry }) => entry.agentName))
      resolve()
    },
    keep: () => undefined,
    reset: () => undefined,
    end: () => undefined,
  })
  await promise
  follower.leave()
  expect(seen).toEqual(['meanwhile'])
})
