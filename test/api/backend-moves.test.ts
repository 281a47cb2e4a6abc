import { createServer, type Server } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { DIALECTS } from '../support/store.ts'

let server: TestPostgres
let database: TestDatabase
let config: Record<string, unknown>
beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  const { host, port, username } = server
  const password = server.password ?? 'never asked for'
  config = { host, port, database: database.name, username, password, local: true }
})
afterAll(async () => {
  await database?.drop()
  await server?.stop()
})

/** Asks every client for its password in clear text (AuthenticationCleartextPassword), and keeps the answers. */
async function startListener(): Promise<{ port: number; heard(): string; server: Server }> {
  let heard = ''
  const listener = createServer((socket) => {
    socket.once('data', () => socket.write(Buffer.from('R\0\0\0\x08\0\0\0\x03', 'latin1')))
    socket.on('data', (data) => {
      heard += data.toString('latin1')
      if (data[0] === 'p'.charCodeAt(0)) socket.destroy()
    })
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return { port: address.port, heard: () => heard, server: listener }
}

describe.each(DIALECTS)('changing the upstream of a backend, on %s', (dialect) => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialect })
  })
  afterAll(() => app.close())

  const put = (name: string, body: unknown, query = '') =>
    app.admin('PUT', `/v1/admin/backends/${name}${query}`, body)

  test('requires its secrets again', async () => {
    const listener = await startListener()
    const name = await app.newBackend({ type: 'postgres', name: 'kept', config })
    const { config: shown } = (await app.admin('GET', `/v1/admin/backends/${name}`)).body
    const { password: _, ...without } = shown
    for (const moved of [
      { ...shown, port: listener.port },
      { ...without, port: listener.port },
      { ...without, host: 'localhost' },
    ]) {
      for (const query of ['', '?force=true', '?check=false']) {
        const reply = await put(name, { config: moved }, query)
        expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
        expect(reply.body.error.message).toContain('re-entering "password"')
      }
    }
    expect(listener.heard()).toBe('')
    // With a password, the new address is tried.
    const entered = await put(name, {
      config: { ...shown, port: listener.port, password: 'for the new one' },
    })
    expect(entered.status).toBeGreaterThanOrEqual(400)
    expect(listener.heard()).not.toBe('')
    // It asks for the password in clear, which only a server with a verified certificate gets.
    expect(listener.heard()).not.toContain('for the new one')
    expect((await put(name, { config: { ...shown, grant: 'read-write' } })).status).toBe(200)
    listener.server.close()
  })

  test('is a conflict while credentials live at the old upstream, the only place to revoke them', async () => {
    const name = await app.newBackend({ type: 'postgres', name: 'moved', config })
    const agent = await app.newAgent({ scopes: [name] })
    const issued = (await agent.client.post(`/v1/credentials/${name}`)).body
    const moved = { config: { ...config, host: 'localhost' } }
    const refused = await put(name, moved)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect(refused.body.error.message).toContain('"host" selects another upstream')
    // Fields that do not select the upstream may still change.
    expect((await put(name, { config: { ...config, schemas: ['public'] }, max_ttl: '2h' })).status).toBe(200)
    expect((await put(name, moved, '?force=true')).status).toBe(200)
    expect((await put(name, { config }, '?force=true')).status).toBe(200)
    const ended = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    expect(ended.body.upstream).toBe('revoked')
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const role = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [issued.fields.username])
    await client.end()
    expect(role.rowCount).toBe(0)
    expect((await put(name, moved)).status).toBe(200)
    const { body } = await app.admin('GET', `/v1/admin/audit?backend=${name}&action=backend.changed`)
    expect(body.map((entry: { details: unknown }) => entry.details)).toEqual([
      { fields: ['config'], moved: 'host', force: false },
      { fields: ['config'], moved: 'host', force: true },
      { fields: ['config'], moved: 'host', force: true },
      { fields: ['config', 'max_ttl'] },
    ])
  })

  test('is refused when an issue overtakes it', async () => {
    const name = await app.newBackend({ type: 'postgres', name: 'raced', config })
    const agent = await app.newAgent({ scopes: [name] })
    const moves = ['localhost', '127.0.0.1']
    const [changes, issues] = await Promise.all([
      Promise.all(
        Array.from({ length: 6 }, (_, turn) =>
          put(name, { config: { ...config, host: moves[turn % 2] } }, '?check=false'),
        ),
      ),
      Promise.all(Array.from({ length: 6 }, () => agent.client.post(`/v1/credentials/${name}`))),
    ])
    for (const reply of changes) expect([200, 409]).toContain(reply.status)
    const given = issues.filter((reply) => reply.status === 200).map((reply) => reply.body)
    const { body: shown } = await app.admin('GET', `/v1/admin/backends/${name}`)
    for (const { id, fields } of given) {
      expect(fields.host).toBe(shown.config.host)
      expect((await agent.client.delete(`/api/v1/credentials/${id}`)).body.upstream).toBe('revoked')
    }
  })
})
