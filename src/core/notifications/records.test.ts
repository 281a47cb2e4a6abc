import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { DAY_MS, HOUR_MS } from '../../domain/limits.ts'
import { changeBackend, createBackend } from '../backends/configure-backend.ts'
import { deleteBackend } from '../backends/delete-backend.ts'
import { createHealthRecorder } from './record-health.ts'
import { createAgeWatch } from './watch-ages.ts'

let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

/** Nobody has to be there. */
const create = (more: object = {}) =>
  createBackend(test.core, LOCAL, { type: 'postgres', name: 'db', config: postgres('first'), ...more }, false)
const postgres = (password: string) => ({
  host: '127.0.0.1',
  port: 1,
  database: 'shop',
  username: 'mayfly',
  password,
  local: true,
})
const open = async () => {
  const { byName } = await test.core.backends.at(await test.core.store.generation())
  const found = byName.get('db')
  if (found === undefined) throw new Error('no backend')
  return found
}
const recorded = async () =>
  (await test.audit()).map(({ action }) => action).filter((action) => /down|up$|aged|expiring/.test(action))

it('records that a backend went down and came back, once each, whatever other nodes and restarts see', async () => {
  await create()
  const backend = await open()
  const { health, store } = test.core
  const one = createHealthRecorder(test.core)
  health.succeeded(backend)
  const fail = () => health.failed(backend, store.now(), { reason: 'unreachable', detail: 'ECONNREFUSED' })
  test.advance(1_000)
  fail()
  await expect.poll(recorded).toEqual(['backend.down'])
  expect((await test.audit('backend.down'))[0]).toMatchObject({
    backend: 'db',
    outcome: 'failed',
    details: { reason: 'unreachable' },
  })
  // Another node, which sees the same.
  const other = createHealthRecorder(test.core)
  await other.record()
  fail()
  test.advance(1_000)
  health.succeeded(backend)
  await expect.poll(recorded).toEqual(['backend.down', 'backend.up'])
  await Promise.all([one.record(), other.record()])
  expect(await recorded()).toEqual(['backend.down', 'backend.up'])
  one.stop()
  other.stop()
})

it('records that a backend came back which a node found down that has ended since', async () => {
  await create()
  const backend = await open()
  const { health, store } = test.core
  const ended = createHealthRecorder(test.core)
  health.failed(backend, store.now(), { reason: 'timeout', detail: '' })
  await expect.poll(recorded).toEqual(['backend.down'])
  ended.stop()
  // This node has seen nothing but success.
  test.advance(1_000)
  health.succeeded(backend)
  const other = createHealthRecorder(test.core)
  await other.record()
  expect(await recorded()).toEqual(['backend.down', 'backend.up'])
  other.stop()
})

it('tells once of a root secret that is older than it should be, and again of the next one', async () => {
  await create({ rotate_root_after: '30d' })
  const ages = createAgeWatch(test.core)
  const look = () => ages.look(undefined)
  test.advance(30 * DAY_MS - 1)
  await look()
  expect(await recorded()).toEqual([])
  test.advance(1)
  await look()
  await look()
  await createAgeWatch(test.core).look(undefined)
  expect(await recorded()).toEqual(['backend.root_aged'])
  expect((await test.audit('backend.root_aged'))[0]?.facts).toMatchObject({ rotate_root_after: '720h' })
  // Everything but a secret may change.
  const change = (command: object) =>
    changeBackend(test.core, LOCAL, 'db', command, { check: false, force: false })
  await change({ description: 'the shop', config: postgres('first') })
  test.advance(HOUR_MS)
  await look()
  await change({ config: postgres('second') })
  test.advance(29 * DAY_MS)
  await look()
  expect(await recorded()).toHaveLength(1)
  test.advance(DAY_MS)
  await look()
  expect(await recorded()).toHaveLength(2)
  await change({ rotate_root_after: null })
  test.advance(90 * DAY_MS)
  await look()
  expect(await recorded()).toHaveLength(2)
})

it('forgets what it knew of a backend that is gone', async () => {
  await create({ rotate_root_after: '1h' })
  test.advance(2 * HOUR_MS)
  await createAgeWatch(test.core).look(undefined)
  const { uid } = await open()
  expect(await test.core.store.meta.list('told|')).toHaveLength(1)
  await deleteBackend(test.core, LOCAL, 'db', false)
  await test.core.store.commit(test.core.store.backends.erase(uid))
  expect(await test.core.store.meta.list('told|')).toEqual([])
})

it('refuses an age for a kind that logs in with no secret, and a text that is no duration', async () => {
  await expect(create({ rotate_root_after: 'soon' })).rejects.toThrow('"rotate_root_after" is not a duration')
  const config = {
    organization_id: '00000000-0000-0000-0000-000000000000',
    federation_rule_id: 'fdrl_1',
    service_account_id: 'svac_1',
  }
  await expect(create({ type: 'anthropic', config, rotate_root_after: '90d' })).rejects.toThrow(
    '"rotate_root_after" is for kinds that log in with a secret; this one has none.',
  )
})

it('tells once of a certificate that expires within 14 days', async () => {
  const now = test.core.store.now()
  const certificate = { sha256: 'ab12', notAfter: now + 15 * DAY_MS }
  const ages = createAgeWatch(test.core)
  await ages.look(certificate)
  expect(await recorded()).toEqual([])
  test.advance(DAY_MS)
  await ages.look(certificate)
  await createAgeWatch(test.core).look(certificate)
  expect(await recorded()).toEqual(['certificate.expiring'])
  await ages.look({ sha256: 'cd34', notAfter: now + 5 * DAY_MS })
  expect(await recorded()).toHaveLength(2)
})
