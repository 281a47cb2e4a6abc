import { expect, it } from 'vitest'
import { LOCAL, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import { changeBackend, createBackend } from './configure-backend.ts'

it('distinguishes a move that a new credential prevents from a concurrent change', async () => {
  const test = await testCore()
  const { core } = test
  const config = { host: '127.0.0.1', database: 'app', username: 'mayfly', local: true }
  const { uid } = await createBackend(core, LOCAL, { type: 'postgres', name: 'db', config }, false)
  const options = { check: false, force: false }
  const move = () => changeBackend(core, LOCAL, 'db', { config: { ...config, host: 'localhost' } }, options)
  const race = (run: () => Promise<unknown>) => test.before(() => true, run)

  race(() => changeBackend(core, LOCAL, 'db', { description: 'mine' }, options))
  await expect(move()).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(/read it again/),
  })
  race(() => core.store.commit([core.store.credentials.insert(someCredential({ backendUid: uid }))]))
  await expect(move()).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringMatching(/"host" selects another upstream/),
  })
  await test.close()
})
