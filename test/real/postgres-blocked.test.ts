import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import { ended } from '../support/postgres-kind.ts'
import { openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'

let app: TestApp
let upstream: UpstreamDatabase
let root: pg.Client

beforeAll(async () => {
  upstream = await openUpstreamDatabase()
  root = upstream.root
  await root.query('CREATE TABLE orders (name text)')
  app = await startApp({ jobs: true, argv: { upstreamTimeout: '2s' } })
  const config = {
    ...upstream.config(),
    grant: 'statements',
    statements: ['GRANT SELECT ON public.orders TO {{name}}'],
  }
  const reply = await app.admin('POST', '/v1/admin/backends', { type: 'postgres', name: 'db', config })
  expect(reply.status).toBe(200)
})
afterAll(async () => {
  await app.close()
  await upstream.close()
})

test('a revocation is tried at once while an agent polls a blocked backend', async () => {
  const agent = await app.newAgent({ scopes: ['db:orders'] })
  const { id, fields } = (await agent.client.post('/v1/credentials/db')).body
  const holder = new pg.Client({ connectionString: fields.url })
  await holder.connect()
  holder.on('error', () => undefined)
  const thrownOut = ended(holder)
  // No other grant on the table gets past this one before it ends.
  await root.query('BEGIN; GRANT SELECT ON orders TO pg_monitor')
  let polling = true
  const seen: { status: number; code: string }[] = []
  const pollers = Array.from({ length: 8 }, async () => {
    while (polling) {
      const { status, body } = await agent.client.post('/v1/credentials/db')
      seen.push({ status, code: body.error?.code })
    }
  })
  await eventually(async () => expect(seen.length).toBeGreaterThan(20))
  const reply = await app.admin('DELETE', `/api/v1/credentials/${id}`)
  expect([reply.status, reply.body.revoked]).toEqual([200, true])
  const role = 'SELECT rolcanlogin FROM pg_roles WHERE rolname = $1'
  expect((await root.query(role, [fields.username])).rows).toEqual([{ rolcanlogin: false }])
  await thrownOut
  await root.query('ROLLBACK')
  polling = false
  await Promise.all(pollers)
  expect(seen.filter(({ code }) => code === 'backend_error').length).toBeGreaterThan(0)
  await eventually(async () => expect((await root.query(role, [fields.username])).rows).toEqual([]))
})
