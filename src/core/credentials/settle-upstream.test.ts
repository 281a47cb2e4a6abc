import { afterEach, beforeEach, expect, it } from 'vitest'
import { type TestCore, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import { createBreaker } from '../../backends/breaker.ts'
import type { Backend, Kind } from '../../backends/kind.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { settleUpstream } from './settle-upstream.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
})
afterEach(() => test.close())

function upstream(revoke: () => Promise<void>): OpenBackend {
  return {
    name: 'db',
    type: 'fake',
    kind: { revocation: 'exact' } as Kind,
    breakers: { issuing: createBreaker(test.core.store.now), revoking: createBreaker(test.core.store.now) },
    connect: async () => ({ recover: () => ({ name: 'x' }), revoke }) as unknown as Backend,
  } as OpenBackend
}
const down = () => Promise.reject(new Error('down'))

async function revoking(createdAt: number) {
  const credential = someCredential({ state: 'revoking', sealedHandle: null, createdAt, dueAt: createdAt })
  await test.core.store.commit([test.core.store.credentials.insert(credential)])
  return credential
}
const found = async (id: string) => {
  const row = await test.core.store.credentials.find(id)
  if (row === undefined) throw new Error('gone')
  return row
}

it('counts calls to the upstream, but not those that its breaker held back', async () => {
  const counted: string[] = []
  const core = {
    ...test.core,
    meter: { ...test.core.meter, revoked: (_: string, outcome: string) => counted.push(outcome) },
  }
  const row = await revoking(core.store.now())
  const backend = upstream(down)
  expect(await settleUpstream(core, backend, row)).toBe(false)
  expect(counted).toEqual(['failed'])
  for (let failure = 0; failure < 5; failure += 1) backend.breakers.revoking.enter()?.failed('outage')
  expect(await settleUpstream(core, backend, { ...row, attempts: 1 })).toBe(false)
  expect(counted).toEqual(['failed'])
  expect(await found(row.id)).toMatchObject({ attempts: 1, state: 'revoking' })
})

it('revokes although the upstream has failed every issue', async () => {
  const row = await revoking(test.core.store.now() - 60_000)
  const revoked: string[] = []
  const backend = upstream(async () => void revoked.push(row.id))
  for (let failure = 0; failure < 20; failure += 1) backend.breakers.issuing.enter()?.failed('outage')
  expect(backend.breakers.issuing.wait()).toBeGreaterThan(0)
  expect(await settleUpstream(test.core, backend, row)).toBe(true)
  expect(revoked).toEqual([row.id])
})

it('looks for an unseen account once more when the issue can no longer be under way', async () => {
  const { core } = test
  test.freeze()
  const began = core.store.now()
  const row = await revoking(began)
  const asked: number[] = []
  const backend = upstream(async () => void asked.push(core.store.now() - began))
  expect(await settleUpstream(core, backend, row)).toBe(false)
  const certain = 2 * core.settings.upstreamTimeoutMs
  expect(await found(row.id)).toMatchObject({ state: 'revoking', dueAt: began + certain, settledAt: null })
  test.advance(certain)
  expect(await settleUpstream(core, backend, await found(row.id))).toBe(true)
  expect(asked).toEqual([0, certain])
  expect(await found(row.id)).toMatchObject({ state: 'revoked', dueAt: null })
})

it('records the first failure and that the credential is stuck, and retries for ever', async () => {
  const { core } = test
  const row = await revoking(core.store.now())
  const stuckSince: (number | null)[] = []
  for (let time = 0; time < 9; time += 1) {
    test.advance(1_000)
    expect(await settleUpstream(core, upstream(down), await found(row.id))).toBe(false)
    stuckSince.push((await found(row.id)).stuckAt)
  }
  expect(stuckSince.findIndex((at) => at !== null)).toBe(5)
  expect(new Set(stuckSince.slice(5)).size).toBe(1)
  const entries = await test.audit('credential.revoke_failed')
  expect(entries.map(({ facts }) => [facts['attempts'], facts['stuck']])).toEqual([
    [1, false],
    [6, true],
  ])
  expect(await found(row.id)).toMatchObject({ state: 'revoking', attempts: 9 })
})
