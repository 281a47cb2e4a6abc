import { afterAll, beforeAll, expect, test } from 'vitest'
import { newCredentialId } from '../contract/open-kind.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { startOwnPostgres } from '../support/postgres.ts'
import { createLogin, openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'

/** More than a page of the listing. */
const MANY = 520

let app: TestApp
let agent: NewAgent
let upstream: UpstreamDatabase
beforeAll(async () => {
  upstream = await openUpstreamDatabase(await startOwnPostgres())
  app = await startApp()
  agent = await app.newAgent({ scopes: ['db', 'beside'] })
  const config = upstream.config(await createLogin(upstream))
  for (const name of ['db', 'beside']) {
    const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name, config })
    expect(reply.status, reply.text).toBe(200)
  }
})
afterAll(async () => {
  await app.close()
  await upstream.close()
})

const roleOf = (id: string) => `mf_${id.slice('cred_'.length)}`
const roles = async () =>
  (await upstream.root.query("SELECT rolname FROM pg_roles WHERE rolname ~ '^mf_' ORDER BY 1")).rows.map(
    ({ rolname }) => String(rolname),
  )
const issue = async (backend: string) => {
  const reply = await agent.client.post('/api/v1/credentials', { backend })
  expect(reply.status, reply.text).toBe(201)
  return String(reply.body.id)
}

test('ends what no record owns, and nothing of living credentials, also while others are issued', async () => {
  const living = [await issue('db'), await issue('beside')]
  const lost = Array.from({ length: MANY }, () => newCredentialId()).sort()
  await upstream.root.query(lost.map((id) => `CREATE ROLE ${roleOf(id)} LOGIN`).join(';'))
  // Not of our form.
  await upstream.root.query('CREATE ROLE mf_admin')
  const issuing = (async () => {
    for (let n = 0; n < 20; n += 1) living.push(await issue('db'))
  })()
  const looked = await app.admin('POST', '/v1/admin/backends/db/reconcile')
  expect([looked.status, looked.body.next_cursor]).toEqual([200, null])
  expect(looked.body.accounts).toEqual(lost.map((credential_id) => ({ credential_id, outcome: 'left' })))
  const ended = new Set<string>()
  for (let cursor: string | undefined; cursor !== null; ) {
    const body = { revoke: true, ...(cursor === undefined ? {} : { cursor }) }
    const reply = await app.admin('POST', '/v1/admin/backends/db/reconcile', body)
    expect(reply.status, reply.text).toBe(200)
    for (const { credential_id, outcome } of reply.body.accounts) {
      expect(outcome).toBe('revoked')
      ended.add(credential_id)
    }
    cursor = reply.body.next_cursor
  }
  await issuing
  expect([...ended].sort()).toEqual(lost)
  expect(await roles()).toEqual(['mf_admin', ...living.map(roleOf)].sort())
  const entries = await app.admin('GET', `/v1/admin/audit?credential=${lost[0]}`)
  expect(entries.body).toMatchObject([
    { action: 'credential.revoked', actor: 'local', backend: 'db', details: { reason: 'no_record' } },
  ])
})

test('answers clearly where the kind cannot', async () => {
  await app.newBackend({ name: 'tok' })
  for (const what of ['reconcile', 'rotate-root']) {
    const { status, body } = await app.admin('POST', `/v1/admin/backends/tok/${what}`)
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
  }
})
