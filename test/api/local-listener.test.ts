import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStoredConfig, sealConfig } from '../../src/core/backends/definition.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { type ForeignListener, listenAs, NOBODY } from '../support/listener-as.ts'

const SECRET = 'the-root-secret-of-the-backend'

/** How a MySQL server begins (protocol 10): it asks for `caching_sha2_password`, of which it then wants the password itself. */
const MYSQL_GREETING = (() => {
  const plugin = 'caching_sha2_password\0'
  const payload = Buffer.concat([
    Buffer.from('\x0a8.4.0\0\x01\0\0\0abcdefgh\0', 'latin1'),
    Buffer.from([0xff, 0xf7, 0xff, 0x02, 0x00, 0xff, 0xdf, 21]),
    Buffer.alloc(10),
    Buffer.from(`ijklmnopqrst\0${plugin}`, 'latin1'),
  ])
  return Buffer.concat([Buffer.from([payload.length, 0, 0, 0]), payload]).toString('latin1')
})()

const TOKEN = JSON.stringify({
  workplace: { slug: 'acme' },
  token: { slug: 'slug', key: 'dp.st.key', expires_at: '2999-01-01T00:00:00Z' },
})
const DOPPLER_REPLY = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${TOKEN.length}\r\n\r\n${TOKEN}`

const configs: Readonly<Record<string, (port: number) => object>> = {
  mysql: (port) => ({ host: '127.0.0.1', port, username: 'mayfly', password: SECRET, databases: ['app'] }),
  redis: (port) => ({ host: '127.0.0.1', port, username: 'mayfly', password: SECRET }),
  mqtt: (port) => ({ url: `mqtt://127.0.0.1:${port}`, username: 'mayfly', password: SECRET }),
  ldap: (port) => ({
    url: `ldap://127.0.0.1:${port}`,
    tls: 'disable',
    bind_dn: 'cn=mayfly,dc=test',
    bind_password: SECRET,
    base: 'ou=people,dc=test',
  }),
  rabbitmq: (port) => ({
    url: `http://127.0.0.1:${port}`,
    username: 'mayfly',
    password: SECRET,
    vhosts: ['/'],
  }),
  vault: (port) => ({
    address: `http://127.0.0.1:${port}`,
    auth: 'token',
    token: SECRET,
    policies: ['app'],
  }),
  doppler: (port) => ({ base_url: `http://127.0.0.1:${port}`, token: SECRET, configs: ['app/prd'] }),
}

describe.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
  'an upstream on a loopback address',
  () => {
    let app: TestApp
    let agent: NewAgent
    beforeAll(async () => {
      app = await startApp()
      agent = await app.newAgent({ scopes: ['*'] })
    })
    afterAll(() => app.close())

    const create = (type: string, name: string, config: object, query = '') =>
      app.local.post(`/v1/admin/backends${query}`, { type, name, config: { ...config, local: true } })
    const issue = (backend: string) =>
      agent.client.post('/api/v1/credentials', { backend, scopes: ['app/prd:read'], ttl: '1h' })

    it.each(Object.keys(configs))('of kind %s gets nothing where another account listens', async (type) => {
      await using listener = await listenAs(NOBODY, type === 'mysql' ? { greeting: MYSQL_GREETING } : {})
      const reply = await create(type, `swapped-${type}`, configs[type]!(listener.port))
      expect([reply.status, reply.body.error?.message]).toEqual([
        503,
        expect.stringMatching(/Another account of this machine listens .*"local_user"/),
      ])
      expect(await received(listener)).toBe('')
    })

    it('gets what it needs where the configuration names the account', async () => {
      await using listener = await listenAs(NOBODY, { answer: DOPPLER_REPLY })
      const config = { ...configs['doppler']!(listener.port), local_user: 'nobody' }
      expect((await create('doppler', 'named', config, '?check=false')).status).toBe(200)
      expect((await issue('named')).status).toBe(201)
      expect(await received(listener)).toContain(SECRET)
    })

    it('goes on with a warning until its configuration changes, if that is older than the check', async () => {
      await using listener = await listenAs(NOBODY, { answer: DOPPLER_REPLY })
      const config = configs['doppler']!(listener.port)
      await create('doppler', 'older', config, '?check=false')
      expect((await issue('older')).status).toBe(503)
      await makeOlder('older')
      expect((await issue('older')).status).toBe(201)
      expect(app.logged()).toContain('Once the configuration is changed, nothing is sent there.')
      // The kept secret is not asked for again: nothing else changed.
      const changed = await app.local.put('/v1/admin/backends/older?check=false', {
        config: { ...config, token: '[redacted]', local: true },
      })
      expect(changed.status).toBe(200)
      expect((await issue('older')).status).toBe(503)
    })

    it('changes the account only with the secret, and only for who may reach into the network of the server', async () => {
      const config = configs['doppler']!(1)
      await create('doppler', 'guarded', config, '?check=false')
      const change = { config: { ...config, local: true, local_user: 'nobody', token: '[redacted]' } }
      const kept = await app.local.put('/v1/admin/backends/guarded?check=false', change)
      expect([kept.status, kept.body.error?.message]).toEqual([
        400,
        'Changing "local_user" requires re-entering "token".',
      ])
      const other = await app.newAgent({ scopes: ['admin:backends:write', 'guarded:*'] })
      const refused = await other.client.put('/v1/admin/backends/guarded', {
        config: { ...config, local: true, local_user: 'nobody' },
      })
      expect(refused.status).toBe(403)
    })

    /** As a version without the field stored it. */
    async function makeOlder(name: string): Promise<void> {
      const { core } = app
      const stored = await core.store.backends.findByName(name)
      if (stored === undefined) throw new Error('no backend')
      const { local_user: _, ...config } = openStoredConfig(core, stored) ?? {}
      const after = {
        ...stored,
        sealedConfig: sealConfig(core, stored.uid, config),
        version: stored.version + 1,
      }
      const outcome = await core.store.commit([...core.store.backends.change(stored, after)])
      expect(outcome.done).toBe(true)
    }
  },
)

/** What the listener has, once it has read what was sent. */
async function received(listener: ForeignListener): Promise<string> {
  await listener.settled()
  return listener.received()
}
