import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

/** A node of the next version adds to the schema while one of this version serves. */

let postgres: TestPostgres
let database: TestDatabase
let app: TestApp
beforeAll(async () => {
  postgres = await startPostgres()
  database = await postgres.createDatabase()
  app = await startApp({ databaseUrl: database.url, jobs: true })
  await app.newBackend({ type: 'jwt', name: 'orders', config: { audience: 'https://orders.example' } })
})
afterAll(async () => {
  await app.close()
  await database.drop()
  await postgres.stop()
})

/** What agents and administrators do all day, as statuses. */
async function aDay(): Promise<number[]> {
  const agent = await app.newAgent({ scopes: ['*'] })
  const { client } = agent
  const issued = await client.post('/api/v1/credentials', { backend: 'orders' })
  const kept = await client.post(
    '/api/v1/credentials',
    { backend: 'orders' },
    { 'Idempotency-Key': agent.name },
  )
  const { id } = issued.body
  const replies = [
    issued,
    kept,
    await client.get(`/api/v1/credentials/${id}`),
    await client.get('/v1/active'),
    await client.get('/v1/status'),
    await client.get('/v1/signing-key'),
    await client.delete(`/api/v1/credentials/${id}`),
    await app.admin('GET', '/v1/admin/agents'),
    await app.admin('GET', '/v1/admin/backends'),
    await app.admin('GET', '/v1/admin/pending'),
    await app.admin('GET', '/v1/admin/audit'),
    await app.admin('GET', `/v1/admin/audit?agent=${agent.name}`),
    await app.admin('DELETE', `/v1/admin/agents/${agent.name}`),
  ]
  return replies.map(({ status }) => status)
}

test('serves on as before, on every connection, when each table has one more column', async () => {
  const before = await aDay()
  expect(before.every((status) => status < 300)).toBe(true)
  // So that each connection has prepared its statements.
  await Promise.all(Array.from({ length: 24 }, aDay))
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const { rows } = await admin.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
  expect(rows.length).toBeGreaterThan(5)
  for (const { tablename } of rows)
    await admin.query(`ALTER TABLE "${tablename}" ADD COLUMN of_the_next_version text`)
  await admin.end()
  const after = await Promise.all(Array.from({ length: 24 }, aDay))
  expect(after).toEqual(after.map(() => before))
})
