import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Client, startApp, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const WRITE = 'admin:backends:write'
const OWN_KEY = JSON.stringify({
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
  d: '870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE',
})

let app: TestApp
let server: TestPostgres
let database: TestDatabase
let postgres: Record<string, unknown>
beforeAll(async () => {
  app = await startApp()
  server = await startPostgres()
  database = await server.createDatabase()
  const { host, port, username } = server
  const password = server.password ?? 'never asked for'
  postgres = { host, port, database: database.name, username, password, local: true }
})
afterAll(async () => {
  await app?.close()
  await database?.drop()
  await server?.stop()
})

/** An agent with these scopes, as a client. */
const holder = async (...scopes: string[]): Promise<Client> => (await app.newAgent({ scopes })).client
const shown = async (name: string) => (await app.admin('GET', `/v1/admin/backends/${name}`)).body
const put = (client: Client, name: string, body: unknown, query = '') =>
  client.put(`/v1/admin/backends/${name}${query}`, body)
const verdict = (reply: { status: number; body: { error?: { code: string } } }) => [
  reply.status,
  reply.body?.error?.code,
]
const REFUSED = [403, 'insufficient_scope']

describe('changing a backend', () => {
  test('requires only admin:backends:write for labels and limits, a narrower grant, and its deletion', async () => {
    const client = await holder(WRITE)
    const name = await app.newBackend({ allowed_scopes: ['a', 'b:*'] })
    const { config } = await shown(name)
    for (const change of [
      { description: 'other', default_ttl: '5m', max_ttl: '3h', rate: '5/hour', max_active: 7 },
      { rate: null, max_active: null },
      { allowed_scopes: ['b:read'] },
      // What was read may be sent back with the change.
      { config, max_ttl: '2h' },
    ])
      expect((await put(client, name, change)).status).toBe(200)
    expect(await shown(name)).toMatchObject({ max_ttl: '2h', allowed_scopes: ['b:read'], config })
    expect((await client.delete(`/v1/admin/backends/${name}`)).status).toBe(204)
  })

  test('requires its whole scope for replacing its root secret and for ending accounts upstream', async () => {
    const name = await app.newBackend()
    const ask = async (client: Client, act: string, body: unknown) =>
      verdict(await client.post(`/v1/admin/backends/${name}/${act}`, body))
    // This kind has neither a root secret nor a listing, which only a caller with the power learns.
    const notHere = [400, 'invalid_request']
    for (const scopes of [[], [`${name}:read`], ['other']]) {
      const client = await holder(WRITE, ...scopes)
      expect(await ask(client, 'rotate-root', {})).toEqual(REFUSED)
      expect(await ask(client, 'reconcile', { revoke: true })).toEqual(REFUSED)
      expect(await ask(client, 'reconcile', {})).toEqual(notHere)
    }
    for (const client of [await holder(WRITE, name), await holder('admin:*')]) {
      expect(await ask(client, 'rotate-root', {})).toEqual(notHere)
      expect(await ask(client, 'reconcile', { revoke: true })).toEqual(notHere)
    }
  })

  test('requires its whole scope for everything else', async () => {
    const name = await app.newBackend({ allowed_scopes: ['a'] })
    const before = await shown(name)
    const changes = [
      { config: { ...before.config, signing_key: OWN_KEY } },
      { config: { ...before.config, audience: 'theirs' } },
      { config: { ...before.config, claims: { role: 'root' } } },
      { allowed_scopes: ['a', 'b'] },
      { allowed_scopes: null },
    ]
    for (const scopes of [[], [`${name}:read`], ['other'], ['admin:agents:*']]) {
      const client = await holder(WRITE, ...scopes)
      for (const change of changes) expect(verdict(await put(client, name, change))).toEqual(REFUSED)
    }
    expect(await shown(name)).toEqual(before)
    for (const scopes of [[WRITE, name], [WRITE, `${name}:*`], [WRITE, '*'], ['admin:*']]) {
      const client = await holder(...scopes)
      for (const change of changes) expect((await put(client, name, change)).status).toBe(200)
      await app.admin('PUT', `/v1/admin/backends/${name}`, { allowed_scopes: ['a'] })
    }
    const { body } = await app.admin('GET', '/v1/admin/audit?action=auth.failed')
    expect(body[0].details).toMatchObject({ reason: 'backend_not_held', scope: name })
  })

  test('does not tell whether a guessed secret is right', async () => {
    const name = await app.newBackend({ config: { audience: 'a', signing_key: OWN_KEY } })
    const { config } = await shown(name)
    const right = await put(await holder(WRITE), name, { config: { ...config, signing_key: OWN_KEY } })
    expect(verdict(right)).toEqual(REFUSED)
  })

  test('cannot be replaced by deleting it and creating another of its name', async () => {
    const name = await app.newBackend({ name: 'trusted' })
    const client = await holder(WRITE)
    expect((await client.delete(`/v1/admin/backends/${name}`)).status).toBe(204)
    const wish = { type: 'jwt', config: { audience: 'a', signing_key: OWN_KEY } }
    for (const again of [name, name.toUpperCase()])
      expect(verdict(await client.post('/v1/admin/backends', { ...wish, name: again }))).toEqual(REFUSED)
    expect((await client.post('/v1/admin/backends', { ...wish, name: 'a-new-name' })).status).toBe(200)
    expect((await (await holder('admin:*')).post('/v1/admin/backends', { ...wish, name })).status).toBe(200)
  })
})

describe('a PostgreSQL backend', () => {
  test('requires its password again when agents are sent elsewhere, or its own role runs other statements', async () => {
    const name = await app.newBackend({ type: 'postgres', config: postgres })
    const { config } = await shown(name)
    const statements = ['GRANT SELECT ON ALL TABLES IN SCHEMA public TO {{name}}']
    for (const change of [
      { connect_host: 'db.example' },
      { connect_port: 6543 },
      { grant: 'statements', statements },
    ]) {
      const alone = await put(await holder(WRITE), name, { config: { ...config, ...change } })
      expect(verdict(alone)).toEqual(REFUSED)
      const kept = await app.admin('PUT', `/v1/admin/backends/${name}`, { config: { ...config, ...change } })
      expect(verdict(kept)).toEqual([400, 'invalid_request'])
      expect(kept.body.error.message).toContain('re-entering "password"')
      const entered = { config: { ...postgres, ...change } }
      expect((await app.admin('PUT', `/v1/admin/backends/${name}`, entered)).status).toBe(200)
      await app.admin('PUT', `/v1/admin/backends/${name}`, { config: postgres })
    }
  })

  test('reaches loopback, does without TLS, and runs own statements only for the local host and admin:*', async () => {
    const remote = { ...postgres, local: false, tls: 'verify-full' }
    const statements = { grant: 'statements', statements: ['GRANT USAGE ON SCHEMA public TO {{name}}'] }
    const delegate = await holder(WRITE)
    const create = (client: Client, name: string, config: unknown, query = '?check=false') =>
      client.post(`/v1/admin/backends${query}`, { type: 'postgres', name, config })
    for (const [field, config] of [
      ['local', postgres],
      ['tls', { ...remote, tls: 'disable' }],
      ['tls', { ...remote, tls: 'require' }],
      ['statements', { ...remote, ...statements }],
    ] as const) {
      const refused = await create(delegate, `pg-${field}`, config, '')
      expect(verdict(refused)).toEqual(REFUSED)
      expect(refused.body.error.message).toContain(`"${field}"`)
    }
    expect((await create(await holder('admin:*'), 'pg-full', { ...postgres, ...statements })).status).toBe(
      200,
    )
    // Who holds all that it gives takes nothing of this along to another place.
    const { config } = await shown('pg-full')
    const owner = await holder(WRITE, 'pg-full')
    const moved = { config: { ...config, port: await freePort(), password: 'known' } }
    expect(verdict(await put(owner, 'pg-full', moved))).toEqual(REFUSED)
    expect((await put(owner, 'pg-full', { max_ttl: '3h', config })).status).toBe(200)
    expect((await put(owner, 'pg-full', { max_ttl: '3h' })).status).toBe(200)
  })

  test('warns of a superuser when it is stored', async () => {
    const wish = { type: 'postgres', name: 'pg-super', config: postgres }
    const { body } = await app.admin('POST', '/v1/admin/backends', wish)
    // A server that trusts this login is a second one.
    expect(body.warnings[0]).toContain('Mayfly logs in as a superuser')
    const changed = await app.admin('PUT', '/v1/admin/backends/pg-super', { config: postgres })
    expect(changed.body.warnings).toEqual(body.warnings)
    expect((await shown('pg-super')).warnings).toBeUndefined()
  })

  test('fails its trial in one way for everybody but the local host and admin:*', async () => {
    const talker = createServer((socket) => socket.on('error', () => undefined).end('220 not PostgreSQL\r\n'))
    await new Promise<void>((resolve) => talker.listen(0, '0.0.0.0', resolve))
    const address = talker.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    const outside = Object.values(networkInterfaces())
      .flatMap((one) => one ?? [])
      .find((one) => !one.internal && one.family === 'IPv4')?.address
    const hosts = [
      { host: 'localhost', port: address.port },
      { host: 'db.invalid' },
      ...(outside === undefined
        ? []
        : [
            { host: outside, port: address.port },
            { host: outside, port: await freePort() },
          ]),
    ]
    const [delegate, full] = [await holder(WRITE), await holder('admin:*')]
    const told = new Map<Client, Set<string>>([
      [delegate, new Set()],
      [full, new Set()],
    ])
    for (const host of hosts) {
      const wish = { type: 'postgres', name: 'pg-x', config: { ...postgres, local: false, ...host } }
      for (const [client, answers] of told) {
        const { status, body } = await client.post('/v1/admin/backends', wish)
        answers.add(JSON.stringify([status, body.error.code, body.error.message]))
      }
      const untried = await delegate.post('/v1/admin/backends?check=false', wish)
      expect(verdict(untried)).toEqual(REFUSED)
    }
    talker.close()
    expect([...(told.get(delegate) ?? [])]).toEqual([expect.stringContaining('log of the server says why')])
    expect(told.get(full)?.size).toBeGreaterThan(1)
    expect(app.logged()).toContain('the trial of a backend failed')
  })
})
