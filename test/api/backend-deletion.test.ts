import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { addCredentials } from '../support/many-credentials.ts'
import { startPostgres, type TestDatabase } from '../support/postgres.ts'
import { DIALECTS } from '../support/store.ts'

/** More than a request ends before it answers. */
const MANY = 10_100

describe.each(DIALECTS)('deleting a backend with very many credentials on %s', (dialect) => {
  let app: TestApp
  let database: TestDatabase | undefined
  let agent: NewAgent
  beforeAll(async () => {
    database = dialect === 'postgres' ? await (await startPostgres()).createDatabase() : undefined
    app = await startApp(database === undefined ? {} : { databaseUrl: database.url })
    agent = await app.newAgent({ scopes: ['big', 'small'] })
  })
  afterAll(async () => {
    await app.close()
    await database?.drop()
  })
  const show = () => app.admin('GET', '/v1/admin/backends/big')

  test('answers 202 with how many remain, issues nothing more, and shows the progress', async () => {
    await app.newBackend({ name: 'big' })
    await addCredentials(app.core, 'big', agent, MANY)
    const reply = await app.admin('DELETE', '/v1/admin/backends/big?force=true')
    expect([reply.status, reply.headers.get('location')]).toEqual([202, '/v1/admin/backends/big'])
    const { since } = reply.body
    const deletion = { since, remaining: MANY }
    expect(reply.body).toEqual({ name: 'big', ...deletion, poll_url: '/v1/admin/backends/big' })
    expect((await show()).body).toMatchObject({ name: 'big', deletion })
    expect((await app.admin('GET', '/v1/admin/backends')).body).toMatchObject([{ name: 'big', deletion }])
    const again = await app.admin('DELETE', '/v1/admin/backends/big')
    expect([again.status, again.body]).toEqual([202, reply.body])
    expect((await agent.client.post('/v1/credentials/big')).body.error.code).toBe('backend_not_found')
    expect((await agent.client.get('/api/v1/backends')).body).toEqual({ backends: [] })
    const update = await app.admin('PUT', '/v1/admin/backends/big', { max_ttl: '2h' })
    const create = await app.admin('POST', '/v1/admin/backends', {
      type: 'jwt',
      name: 'big',
      config: { audience: 'x' },
    })
    expect([update.status, create.status]).toEqual([409, 409])
  })

  test('goes on with the deletion after a restart, and each credential gets its entry', async () => {
    if (database !== undefined) {
      const masterKeyFile = join(app.directory, 'master.key')
      const next = await startApp({ databaseUrl: database.url, masterKeyFile })
      await next.sweep()
      await next.close()
    } else await app.sweep()
    expect((await show()).status).toBe(404)
    const [decided] = (await app.admin('GET', '/v1/admin/audit?action=backend.deleted')).body
    expect(decided.details).toEqual({ type: 'jwt', force: true, remaining: MANY })
    let entries: { actor: string; request_id: string; details: unknown }[] = []
    for (let cursor = ''; ; ) {
      const path = `/api/v1/audit?action=credential.revoked&limit=1000${cursor}`
      const { body } = await app.admin('GET', path)
      entries = [...entries, ...body.entries]
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(entries).toHaveLength(MANY)
    const { actor, request_id } = decided
    for (const entry of entries)
      expect(entry).toMatchObject({ actor, request_id, details: { reason: 'backend_deleted' } })
    const living = (await agent.client.get('/v1/status')).body.active_credentials
    expect(living).toEqual([])
    await app.newBackend({ name: 'big' })
    expect((await agent.client.post('/v1/credentials/big')).status).toBe(200)
  })

  test('answers 204 when one change is enough', async () => {
    await app.newBackend({ name: 'small' })
    await addCredentials(app.core, 'small', agent, 90)
    const reply = await app.admin('DELETE', '/v1/admin/backends/small?force=true')
    expect([reply.status, reply.text]).toEqual([204, ''])
    expect((await app.admin('GET', '/v1/admin/backends/small')).status).toBe(404)
  })
})
