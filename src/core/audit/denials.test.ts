import { afterEach, beforeEach, expect, it } from 'vitest'
import { ORIGIN, type TestCore, testCore } from '../../../test/support/core.ts'
import { MINUTE_MS } from '../../domain/limits.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

const refuse = (ipAddress: string) =>
  test.core.denials.record(undefined, { ...ORIGIN, ipAddress }, { action: 'auth.failed' })
const entries = async () =>
  (await test.audit('auth.failed')).map((entry) => [entry.ipAddress, entry.facts['repeated']])

it('a flood from the addresses of one subscriber is one entry, and its count a minute later', async () => {
  for (let host = 1; host <= 100; host += 1) refuse(`2001:db8:1:2::${host.toString(16)}`)
  refuse('2001:db8:1:3::1')
  test.advance(MINUTE_MS - 1)
  await test.core.denials.flush(test.core.store.now())
  // Changes are committed in their order: when this one is, those before it are.
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

it('from more networks than are remembered, what was counted is still told', async () => {
  for (let time = 0; time < 3; time += 1) refuse('192.0.2.1')
  for (let network = 0; network < 10_000; network += 1) {
    refuse(`10.${network >> 16}.${(network >> 8) & 255}.${network & 255}`)
    // Changes are committed in their order: when this one is, those before it are.
    if (network % 1_000 === 999) await test.core.store.commit([test.core.store.meta.add(`${network}`, '')])
  }
  const told = await test.core.store.audit.query({ action: 'auth.failed' }, 20_000)
  const first = told.filter((entry) => entry.ipAddress === '192.0.2.1')
  expect(first.map((entry) => entry.details)).toEqual([{ repeated: 2 }, null])
})
