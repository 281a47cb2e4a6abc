import { expect, it } from 'vitest'
import { LOCAL, testCore } from '../../test/support/core.ts'
import { addCredentials } from '../../test/support/many-credentials.ts'
import { someCredential } from '../../test/support/store.ts'
import { createBackend } from '../core/backends/configure-backend.ts'
import { deleteBackend } from '../core/backends/delete-backend.ts'
import { createSweeper } from './sweep.ts'

it('erases the configuration of a deleted backend once its last credential is settled and nothing is kept upstream', async () => {
  const test = await testCore()
  const { core } = test
  // Nothing listens there, so that what it keeps upstream cannot be removed.
  const config = { host: '127.0.0.1', port: 1, database: 'app', username: 'mayfly', local: true }
  const { uid } = await createBackend(core, LOCAL, { type: 'postgres', name: 'db', config }, false)
  const dueAt = core.store.now() + 3_600_000
  const credential = someCredential({ backendUid: uid, state: 'revoking', dueAt })
  await core.store.commit([core.store.credentials.insert(credential)])
  await deleteBackend(core, LOCAL, 'db', true)
  const sweeper = createSweeper(core)
  const kept = async () => {
    await sweeper.sweep(new AbortController().signal)
    await sweeper.idle()
    return (await core.store.backends.find(uid))?.sealedConfig
  }
  expect(await kept()).toBeTypeOf('string')
  await core.store.commit([core.store.credentials.settle(credential.id, 'revoked', core.store.now())])
  expect(await kept()).toBeTypeOf('string')
  expect(test.logged()).toContain('"gaveUp":false')
  test.advance(600_001)
  expect(await kept()).toBeNull()
  expect(test.logged()).toContain('"gaveUp":true')
  await test.close()
})

it('goes on with a deletion that was interrupted between two slices', async () => {
  const test = await testCore()
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false)
  await addCredentials(core, 'tok', { id: 'ag_1', name: 'one' }, 10_100)
  expect(await deleteBackend(core, LOCAL, 'tok', true)).toMatchObject({ remaining: 10_100 })
  const stopping = new AbortController()
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.params.includes('backend_deleted')),
    async () => stopping.abort(),
  )
  const sweeper = createSweeper(core)
  await sweeper.sweep(stopping.signal)
  await sweeper.idle()
  expect(await deleteBackend(core, LOCAL, 'tok', true)).toMatchObject({ remaining: 10_000 })
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
  expect(await core.store.backends.findByName('tok')).toBeUndefined()
  const entries = await core.store.audit.query({ action: 'credential.revoked' }, 20_000)
  expect(entries).toHaveLength(10_100)
  await test.close()
})
