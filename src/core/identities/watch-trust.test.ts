import { afterEach, beforeEach, expect, it } from 'vitest'
import { type TestCore, testCore } from '../../../test/support/core.ts'
import { identity } from '../../../test/support/identity-tokens.ts'
import { newAgent } from '../../../test/support/store.ts'
import { insert } from '../../store/engine/run.ts'
import { codecs } from '../../store/tables/codecs.ts'
import { createTrustWatch } from './watch-trust.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
})
afterEach(() => test.close())

/** A node with some entries, and a monotonic clock that the test moves. */
function node(...names: string[]) {
  const state = { ticks: 0, names }
  const trusted = () => ({ identities: state.names.map((name) => identity(name)), platforms: [] })
  const identities = { ...test.core.identities, trusted }
  const watch = createTrustWatch({ ...test.core, identities }, () => state.ticks)
  const look = () => watch.look(new AbortController().signal)
  /** Looks every five seconds, for so long. */
  const run = async (seconds: number, ...others: { look(): Promise<void> }[]) => {
    for (let passed = 0; passed < seconds; passed += 5) {
      state.ticks += 5_000
      test.advance(5_000)
      await look()
      for (const other of others) await other.look()
    }
  }
  return { state, look, run }
}

async function agentOf(entry: string) {
  const agent = newAgent({ identity: `identity:${entry}`, identityValues: ['https://issuer.test', '1'] })
  await test.core.store.commit([insert('agents', codecs.agents.encode(agent))])
  return async () => (await test.core.store.agents.findLiving(agent.id)) !== undefined
}

it('ends the agents of an entry that no node has had for 30 s, and no others', async () => {
  const [gone, kept] = [await agentOf('gone'), await agentOf('kept')]
  const one = node('gone', 'kept')
  await one.look()
  one.state.names = ['kept']
  await one.run(30)
  expect([await gone(), await kept()]).toEqual([true, true])
  await one.run(5)
  expect([await gone(), await kept()]).toEqual([false, true])
  expect((await test.audit('agent.deleted')).map(({ facts, actor }) => ({ facts, actor }))).toEqual([
    { facts: { reason: 'untrusted' }, actor: 'system' },
  ])
  expect((await test.core.store.trusts.list()).map(({ entry }) => entry)).toEqual(['identity:kept'])
})

it('ends none as long as another node has the entry', async () => {
  const lives = await agentOf('ci')
  const [before, after] = [node('ci'), node()]
  await before.look()
  await after.run(120, before)
  expect(await lives()).toBe(true)
  await after.run(35)
  expect(await lives()).toBe(false)
})

it('ends none while every node was down, or this one was frozen', async () => {
  const lives = await agentOf('ci')
  await node('ci').look()
  test.advance(3_600_000)
  const restarted = node()
  await restarted.run(20)
  restarted.state.ticks += 3_600_000
  await restarted.run(10)
  expect(await lives()).toBe(true)
  await restarted.run(20)
  expect(await lives()).toBe(false)
})

it('ends none after a restart with the entry, and begins anew when some node had it in between', async () => {
  const lives = await agentOf('ci')
  await node('ci').look()
  test.advance(60_000)
  const other = node()
  await other.run(25)
  test.advance(1)
  await node('ci').look()
  await other.run(25)
  expect(await lives()).toBe(true)
})

it('ends no agent when a node has the entry again at that moment', async () => {
  const lives = await agentOf('ci')
  await node('ci').look()
  const other = node()
  await other.run(30)
  test.before(
    (change) => change.some((step) => step.op === 'invalidate'),
    () => {
      test.advance(1)
      return node('ci').look()
    },
  )
  await other.run(5)
  expect(await lives()).toBe(true)
})
