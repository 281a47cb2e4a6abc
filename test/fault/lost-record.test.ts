import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Change } from '../../src/store/engine/change.ts'
import { StoreError } from '../../src/store/errors.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import type { TestDatabase } from '../support/postgres.ts'
import {
  createLogin,
  openUpstreamDatabase,
  type UpstreamDatabase,
  type UpstreamLogin,
} from '../support/upstream-database.ts'

// The store and the upstream are both real. The test decides when the connection of a commit is lost, and when a replica
// that has not seen the latest rows takes over.

let upstream: UpstreamDatabase
let storage: TestDatabase
let root: pg.Client
let login: UpstreamLogin
let inStore: pg.Client
let app: TestApp
let agent: NewAgent
let isRunning = false

beforeAll(async () => {
  upstream = await openUpstreamDatabase()
  root = upstream.root
  login = await createLogin(upstream)
})
afterAll(async () => {
  await login.drop()
  await upstream.close()
})

beforeEach(async () => {
  storage = await upstream.server.createDatabase()
  app = await startApp({ databaseUrl: storage.url, jobs: true, argv: { upstreamTimeout: '2s' } })
  isRunning = true
  inStore = new pg.Client({ connectionString: storage.url })
  await inStore.connect()
  const config = upstream.config(login)
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'db', config })
  expect(reply.status).toBe(200)
  agent = await app.newAgent({ scopes: ['db'] })
})
afterEach(async () => {
  await login.letIn()
  if (isRunning) await app.close()
  await inStore.end()
  await storage.drop()
})

const roleOf = (id: string) => `mf_${id.slice('cred_'.length)}`
const hasRole = async (id: string) =>
  (await root.query('SELECT FROM pg_roles WHERE rolname = $1', [roleOf(id)])).rowCount === 1

interface Record {
  state: string
  end_reason: string | null
  actions: string[]
}

async function recordOf(id: string): Promise<Record | undefined> {
  const found = await inStore.query('SELECT state, end_reason FROM credentials WHERE id = $1', [id])
  const entries = await inStore.query('SELECT action FROM audit WHERE credential_id = $1 ORDER BY id', [id])
  return found.rows[0] && { ...found.rows[0], actions: entries.rows.map((row) => row.action) }
}

type Commit = TestApp['core']['store']['commit']

/** Runs `atActivation` in place of the commit that activates the next credential. */
function intercept(atActivation: (id: string, commit: () => ReturnType<Commit>) => ReturnType<Commit>): void {
  const { commit } = app.core.store
  app.core.store.commit = (change, options) => {
    const run = () => commit(change, options)
    const id = issuedBy(change)
    if (id === undefined) return run()
    app.core.store.commit = commit
    return atActivation(id, run)
  }
}

function issuedBy(change: Change): string | undefined {
  for (const step of change)
    if (step.op === 'insert' && step.table === 'audit' && step.row.action === 'credential.issued')
      return step.row.credential_id ?? undefined
  return undefined
}

/** The store takes no change until the result is called. */
function breakStore(): () => void {
  const { commit } = app.core.store
  app.core.store.commit = async () => {
    throw new StoreError('the database cannot be reached')
  }
  return () => {
    app.core.store.commit = commit
  }
}

/** As after a failover to a replica that has not seen the last commits. */
async function forget(id: string): Promise<void> {
  await inStore.query('DELETE FROM credentials WHERE id = $1', [id])
  await inStore.query('DELETE FROM audit WHERE credential_id = $1', [id])
}

const key = { 'idempotency-key': 'k' }
const issue = () => agent.client.post('/v1/credentials/db', {}, key)

test('revokes and records again a credential whose row a failover lost during the issue', async () => {
  let id = ''
  intercept(async (issued, commit) => {
    id = issued
    await forget(issued)
    // The role cannot be ended at once: only the record says that it must be.
    await login.shutOut()
    return commit()
  })
  expect((await issue()).status).toBe(409)
  expect(await hasRole(id)).toBe(true)
  expect(await recordOf(id)).toMatchObject({ state: 'revoking', end_reason: 'interrupted' })
  await login.letIn()
  await eventually(async () => expect(await hasRole(id)).toBe(false))
  await eventually(async () => expect((await recordOf(id))?.state).toBe('revoked'))
  expect((await recordOf(id))?.actions).toEqual(
    expect.arrayContaining(['credential.issue_failed', 'credential.revoke_failed', 'credential.settled']),
  )
})

/** A failover loses the row of a credential during its issue, and then the store cannot be written. */
async function loseRecord(): Promise<{ id: string; restore: () => void }> {
  let id = ''
  let restore = () => {}
  intercept(async (issued, commit) => {
    id = issued
    await forget(issued)
    await login.shutOut()
    const outcome = await commit()
    restore = breakStore()
    return outcome
  })
  expect((await issue()).status).toBe(409)
  return { id, restore }
}

test('records a lost row again although the store cannot be written at first', async () => {
  const { id, restore } = await loseRecord()
  expect(await recordOf(id)).toBeUndefined()
  restore()
  await login.letIn()
  await eventually(async () => expect(await hasRole(id)).toBe(false))
  await eventually(async () => expect((await recordOf(id))?.state).toBe('revoked'))
})

test('records a lost row again before the server stops', async () => {
  const { id, restore } = await loseRecord()
  restore()
  isRunning = false
  await app.close()
  expect(await recordOf(id)).toMatchObject({ state: 'revoking', actions: ['credential.issue_failed'] })
})

test('corrects a record that a lost COMMIT left active while its role is gone', async () => {
  let id = ''
  let restore = () => {}
  intercept(async (issued, commit) => {
    id = issued
    await commit()
    restore = breakStore()
    throw new StoreError('the database cannot be reached')
  })
  expect((await issue()).status).toBe(503)
  expect(await hasRole(id)).toBe(false)
  expect(await recordOf(id)).toMatchObject({ state: 'active', end_reason: null })
  expect((await issue()).status).toBe(409)
  restore()
  await eventually(async () => expect((await recordOf(id))?.state).toBe('revoked'))
  const again = await issue()
  expect(again.status).toBe(200)
  expect(again.body.id).not.toBe(id)
  const holder = new pg.Client({ connectionString: again.body.fields.url })
  await holder.connect()
  await holder.end()
})
