import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Step } from '../../src/store/engine/change.ts'
import type { Engine } from '../../src/store/engine/engine.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { type OwnPostgres, startOwnPostgres } from '../support/postgres.ts'
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts'
import { auditRow } from '../support/store.ts'

let server: OwnPostgres
let admin: pg.Client
let proxy: PostgresProxy
let engine: Engine
beforeAll(async () => {
  server = await startOwnPostgres()
  const database = await server.createDatabase()
  admin = new pg.Client(database.url)
  await admin.connect()
  proxy = await startPostgresProxy(server)
  const url = new URL(database.url)
  url.port = String(proxy.port)
  engine = await openPostgres({ url: url.href })
})
afterAll(async () => {
  await engine.close()
  await proxy.close()
  await admin.end()
  await server.stop()
})
beforeEach(() => requireStandby('nobody'))

/** The standby that must confirm each commit; none has that name. */
async function requireStandby(name: string): Promise<void> {
  await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`)
  await admin.query('SELECT pg_reload_conf()')
  await expect
    .poll(async () => (await admin.query('SHOW synchronous_standby_names')).rows)
    .toEqual([{ synchronous_standby_names: name }])
}

const waiting = async () =>
  (await admin.query("SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).rows[0]
    .n

/** Commits a change in each sort of transaction, and cuts the connections while both wait for the standby. */
async function cutWhileWaiting() {
  const rows = [auditRow(), auditRow()]
  const [merged, single] = rows.map((row): Step => ({ op: 'insert', table: 'audit', row }))
  const outcomes = Promise.allSettled([
    engine.commit(merged === undefined ? [] : [merged]),
    engine.commit([{ op: 'invalidate' }, ...(single === undefined ? [] : [single])]),
  ])
  await expect.poll(waiting).toBe(2)
  proxy.interrupt((client) => client.destroy())
  return { ids: rows.map(({ id }) => id).sort(), outcomes }
}

const found = async (ids: string[]) =>
  (await admin.query('SELECT id FROM audit WHERE id = ANY ($1) ORDER BY id', [ids])).rows.map(({ id }) => id)

test('a commit that no synchronous standby confirms is not acknowledged, though readers see it', async () => {
  const { ids, outcomes } = await cutWhileWaiting()
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } })
  expect(await found(ids)).toEqual(ids)
  expect(engine.trouble()).toBeDefined()
  await requireStandby('')
  await expect.poll(() => engine.trouble()).toBeUndefined()
  expect(await engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }])).toEqual({ done: true })
})

test('a lost COMMIT is acknowledged once a later commit is confirmed', async () => {
  const { ids, outcomes } = await cutWhileWaiting()
  await expect.poll(() => found(ids)).toEqual(ids)
  await requireStandby('')
  expect(await outcomes).toEqual(ids.map(() => ({ status: 'fulfilled', value: { done: true } })))
})
