import { expect, it } from 'vitest'
import { LOCAL, testCore } from '../../../test/support/core.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { publishBackendKeys } from './publish-keys.ts'

it('connects to no upstream for a request for its keys', async () => {
  const { core, close } = await testCore()
  const config = { host: '127.0.0.1', database: 'app', username: 'mayfly', local: true }
  await createBackend(core, LOCAL, { type: 'postgres', name: 'db', config }, false)
  const { byName } = await core.backends.at(await core.store.generation())
  let asked = 0
  for (const backend of byName.values())
    Object.assign(backend, { connect: () => Promise.reject(new Error(`asked ${++asked} times`)) })
  await expect(publishBackendKeys(core, 'db')).rejects.toMatchObject({ code: 'not_found' })
  expect([byName.size, asked]).toEqual([1, 0])
  await close()
})
