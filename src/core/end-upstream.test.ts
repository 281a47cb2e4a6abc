import { expect, it } from 'vitest'
import { testCore } from '../../test/support/core.ts'
import { credentialRow } from '../../test/support/store.ts'
import { createBreaker } from '../backends/breaker.ts'
import type { Backend, Kind } from '../backends/kind.ts'
import type { OpenBackend } from '../backends/registry.ts'
import { settleUpstream } from './end-upstream.ts'

it('counts what was asked of the upstream, and not what its breaker held back', async () => {
  const test = await testCore()
  const counted: string[] = []
  const core = {
    ...test.core,
    meter: { ...test.core.meter, revoked: (_: string, outcome: string) => counted.push(outcome) },
  }
  const row = credentialRow({ state: 'revoking', handle: null })
  await core.store.commit([{ op: 'insert', table: 'credentials', row }])
  const backend = {
    name: 'db',
    type: 'fake',
    kind: { revocation: 'exact' } as Kind,
    breaker: createBreaker(core.store.now),
    connect: async (): Promise<Backend> => {
      throw new Error('down')
    },
  } as OpenBackend
  expect(await settleUpstream(core, backend, row)).toBe(false)
  expect(counted).toEqual(['failed'])
  for (let failure = 0; failure < 5; failure += 1) backend.breaker.failed()
  expect(await settleUpstream(core, backend, { ...row, attempts: 1 })).toBe(false)
  expect(counted).toEqual(['failed'])
  expect(await core.store.credentials.find(row.id)).toMatchObject({ attempts: 1, state: 'revoking' })
  await test.close()
})
