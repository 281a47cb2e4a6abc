import { afterEach, beforeEach, expect, it } from 'vitest'
import { ANYBODY, anybodyFrom, type TestCore, testCore } from '../../../test/support/core.ts'
import { MINUTE_MS } from '../../domain/limits.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

const refuse = (ipAddress: string) =>
  test.core.denials.record(anybodyFrom(ipAddress), { action: 'auth.failed' })
const entries = async () =>
  (await test.audit('auth.failed')).map((entry) => [entry.ipAddress, entry.facts['repeated']])

it('records a flood from one subscriber network once, and its count a minute later', async () => {
  for (let host = 1; host <= 100; host += 1) refuse(`2001:db8:1:2::${host.toString(16)}`)
  refuse('2001:db8:1:3::1')
  test.advance(MINUTE_MS - 1)
  await test.core.denials.flush(test.core.store.now())
  // Changes are committed in order, so that all earlier ones are stored now.
  await test.core.store.commit([test.core.store.meta.add('now', '')])
  expect(await entries()).toHaveLength(2)
  test.advance(1)
  await test.core.denials.flush(test.core.store.now())
  expect(await entries()).toEqual([
    ['2001:db8:1:2::1', undefined],
    ['2001:db8:1:3::1', undefined],
    ['2001:db8:1:2::1', 99],
  ])
})

it('records the count of a flood at once after the clock was set back', async () => {
  for (let time = 0; time < 3; time += 1) refuse('192.0.2.1')
  test.advance(-60 * MINUTE_MS)
  await test.core.denials.flush(test.core.store.now())
  expect((await entries()).map(([, repeated]) => repeated)).toContain(2)
})

it('records the count of a flood when its network makes room for others', async () => {
  for (let time = 0; time < 3; time += 1) refuse('192.0.2.1')
  for (let network = 0; network < 10_000; network += 1) {
    refuse(`10.${network >> 16}.${(network >> 8) & 255}.${network & 255}`)
    // Changes are committed in order, so that all earlier ones are stored now.
    if (network % 1_000 === 999) await test.core.store.commit([test.core.store.meta.add(`${network}`, '')])
  }
  const told = await test.core.store.audit.query({ action: 'auth.failed' }, 20_000)
  const first = told.filter((entry) => entry.ipAddress === '192.0.2.1')
  expect(first.map((entry) => entry.details)).toEqual([{ repeated: 2 }, null])
})

it('keeps the agents apart whose clients fail from one network', async () => {
  const fail = (agent?: { id: string; name: string }) =>
    test.core.denials.record(ANYBODY, { action: 'token.refused', ...(agent && { agent }) })
  const [ada, bob] = [
    { id: 'ag_ada', name: 'ada' },
    { id: 'ag_bob', name: 'bob' },
  ]
  for (const who of [ada, bob, bob, undefined, bob, ada]) fail(who)
  test.advance(MINUTE_MS)
  await test.core.denials.flush(test.core.store.now())
  const told = (await test.audit('token.refused')).map((entry) => [entry.agentName, entry.facts['repeated']])
  expect(told).toEqual([
    ['ada', undefined],
    ['bob', undefined],
    [null, undefined],
    ['ada', 1],
    ['bob', 2],
  ])
})
