import { chmod, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { placeArtefact } from '../../src/app/plugins/artefacts.ts'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { parrot } from '../support/plugin-artefact.ts'

let app: TestApp
let directory: string
let agent: NewAgent
let first: string
beforeAll(async () => {
  app = await startApp()
  directory = join(app.directory, 'plugins')
  agent = await app.newAgent({ scopes: ['loro'] })
  first = await placeArtefact(directory, await parrot())
})
afterAll(() => app.close())

const body = (sha256: string, more = {}) => ({
  sha256,
  runtime: 'node',
  protocol: 'mayfly.plugin.v1',
  origin: 'file:parrot.js',
  ...more,
})
const add = (sha256: string, more = {}) => app.admin('POST', '/v1/admin/plugins', body(sha256, more))
const entries = async (action: string) => (await app.admin('GET', `/v1/admin/audit?action=${action}`)).body
const issue = () => agent.client.post('/api/v1/credentials', { backend: 'loro', scopes: ['loro:say:hello'] })
const shown = async (name = 'parrot') =>
  (await app.admin('GET', '/v1/admin/plugins')).body.find((one: { name: string }) => one.name === name)

describe('a request to add or remove a plugin is refused', () => {
  const TRIES = [
    ['POST', '/v1/admin/plugins'],
    ['DELETE', '/v1/admin/plugins/parrot'],
  ] as const

  test('over TCP and with a token, whatever scope it has', async () => {
    const everything = await app.newAgent({ scopes: ['admin:*'] })
    for (const [method, path] of TRIES) {
      const sent = method === 'POST' ? body(first) : undefined
      const headers = { authorization: `Bearer ${everything.token}` }
      for (const reply of [
        await (sent === undefined ? everything.client.delete(path) : everything.client.post(path, sent)),
        await app.admin(method, path, sent, headers),
      ])
        expect([reply.status, reply.body.error.code, reply.body.error.message]).toEqual([
          403,
          'not_allowed',
          expect.stringContaining("on the server's machine"),
        ])
    }
    const denied = await eventually(async () => {
      const found = (await entries('auth.failed')).filter(
        ({ details }: { details: { reason?: string } }) => details.reason === 'plugin_over_network',
      )
      expect(found).not.toEqual([])
      return found
    })
    expect(denied[0]).toMatchObject({ outcome: 'denied', actor: everything.id })
  })

  test('by the rule for local callers, over loopback TCP', async () => {
    const own = await startApp({ ownIssuer: true })
    try {
      const { host } = new URL(own.url)
      const reply = await own.raw({
        method: 'DELETE',
        path: '/v1/admin/plugins/parrot',
        headers: { host },
      })
      expect([reply.status, reply.text]).toEqual([403, expect.stringContaining('admin.sock')])
    } finally {
      await own.close()
    }
  })

  test.each([
    ['a path', { sha256: '../../etc/passwd' }],
    ['a path beside the hash', { path: '/etc/passwd' }],
    ['another runtime', { runtime: '/bin/sh' }],
  ])('with %s', async (_, more) => {
    expect((await add(first, more)).status).toBe(400)
  })
})

describe('what cannot be added', () => {
  test('a file that is not there, or that has other bytes, with an entry', async () => {
    const sha256 = await placeArtefact(directory, Buffer.from('console.log(1)'))
    await chmod(join(directory, sha256), 0o700)
    await writeFile(join(directory, sha256), 'console.log(2)')
    for (const [hash, why] of [
      [sha256, 'has other bytes'],
      ['0'.repeat(64), 'There is no file'],
    ] as const) {
      const { status, body } = await add(hash)
      expect([status, body.error.message]).toEqual([400, expect.stringContaining(why)])
      const [entry] = await entries('plugin.failed')
      expect(entry).toMatchObject({ outcome: 'failed', details: { sha256: hash } })
    }
  })

  test('what is no plugin, whose file is removed', async () => {
    const sha256 = await placeArtefact(directory, Buffer.from('process.exit(0)'))
    const { status, body } = await add(sha256)
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(/^The plugin was not added: /)])
    expect(await readdir(directory)).toEqual([first])
  })

  test('a kind of Mayfly, and a kind other than the one that was named', async () => {
    const sha256 = await placeArtefact(directory, await parrot({ type: 'postgres' }))
    expect((await add(sha256)).body.error).toMatchObject({ code: 'conflict' })
    expect((await add(first, { name: 'macaw' })).body.error.message).toContain('"parrot" and not "macaw"')
    expect(await shown('postgres')).toMatchObject({ builtin: true })
    await placeArtefact(directory, await parrot())
  })
})

describe('a plugin', () => {
  test('is added while the server runs, with what it says of itself', async () => {
    const reply = await add(first)
    expect([reply.status, reply.body]).toEqual([
      200,
      {
        name: 'parrot',
        version: '1.0.0',
        builtin: false,
        sha256: first,
        origin: 'file:parrot.js',
        protocol: 'mayfly.plugin.v1',
        runtime: 'node',
        added_at: expect.any(String),
      },
    ])
    expect(await shown()).toEqual(reply.body)
    expect((await entries('plugin.added'))[0]).toMatchObject({
      actor: 'local',
      auth_method: 'unix_socket',
      details: { plugin: 'parrot', version: '1.0.0', sha256: first, origin: 'file:parrot.js' },
    })
  })

  test.runIf(process.geteuid?.() === 0)('that would run as root is warned of in the log', () => {
    expect(app.logged()).toContain('this plugin runs as root')
  })

  test('is a kind like any other: schema, secrets, issue and revoke', async () => {
    const kinds = (await app.admin('GET', '/v1/admin/kinds')).body
    expect(kinds.find(({ type }: { type: string }) => type === 'parrot')).toMatchObject({ title: 'Parrot' })
    const document = await app.as(undefined).get('/openapi.json')
    expect(Object.keys(document.body.components.schemas)).toContain('CreateParrotBackend')
    const config = { says: 'hello', password: 'never' }
    const made = await app.admin('POST', '/v1/admin/backends', { type: 'parrot', name: 'loro', config })
    expect([made.status, made.body.config]).toEqual([200, { says: 'hello', password: '[redacted]' }])
    const issued = await issue()
    expect(issued.body.token).toMatch(/^hello of 1\.0\.0 in \/\S+$/)
    expect((await agent.client.delete(`/api/v1/credentials/${issued.body.id}`)).body.revoked).toBe(true)
  })

  test('gets a new process on reload, of the pinned bytes', async () => {
    const before = (await issue()).body.token
    expect((await app.admin('POST', '/v1/admin/plugins/parrot/reload')).body).toEqual({
      reloaded: 'parrot',
      version: '1.0.0',
    })
    const after = (await issue()).body.token
    expect([after === before, after]).toEqual([false, expect.stringContaining('hello of 1.0.0')])
  })

  test('is replaced by newer bytes at once, whose predecessors are removed', async () => {
    const second = await placeArtefact(directory, await parrot({ version: '2.0.0' }))
    // Bytes that nobody has pinned are not started.
    await app.admin('POST', '/v1/admin/plugins/reload')
    expect((await issue()).body.token).toContain('of 1.0.0')
    expect((await add(second)).body.version).toBe('2.0.0')
    expect((await issue()).body.token).toContain('of 2.0.0')
    expect((await entries('plugin.added'))[0].details).toMatchObject({
      replaced: '1.0.0',
      replaced_sha256: first,
    })
    expect(await readdir(directory)).toEqual([second])
  })

  test('whose file was changed does not start again, and the entry says why', async () => {
    const { sha256 } = await shown()
    const path = join(directory, sha256)
    await chmod(path, 0o700)
    await writeFile(path, `${await parrot({ version: '2.0.0' })}//`)
    await app.admin('POST', '/v1/admin/plugins/parrot/reload')
    expect((await issue()).status).toBeGreaterThanOrEqual(500)
    await eventually(async () =>
      expect((await entries('plugin.failed'))[0]).toMatchObject({
        actor: 'system',
        details: { plugin: 'parrot', reason: expect.stringContaining('has other bytes') },
      }),
    )
    await rm(path)
    await placeArtefact(directory, await parrot({ version: '2.0.0' }))
  })

  test('is not removed while a backend of its kind needs it', async () => {
    const { status, body } = await app.admin('DELETE', '/v1/admin/plugins/parrot')
    expect([status, body.error.code, body.error.message]).toEqual([
      409,
      'conflict',
      expect.stringContaining('loro'),
    ])
  })

  test('that is gone leaves its backends broken, and their credentials wait for it', async () => {
    await app.admin('POST', '/v1/admin/plugins/parrot/reload')
    const held = (await issue()).body
    expect(held.token).toContain('of 2.0.0')
    const plugin = await app.core.store.plugins.find('parrot')
    if (plugin === undefined) throw new Error('it is gone already')
    const lost = { op: 'run', sql: 'DELETE FROM plugins', params: [], rows: 1 } as const
    await app.core.store.commit([lost, { op: 'invalidate', topic: 'backends' }])
    const backend = (await app.admin('GET', '/v1/admin/backends/loro')).body
    expect(backend).toMatchObject({ broken: true, config: {}, type: 'parrot' })
    const refused = await issue()
    expect([refused.status, refused.body.error.message]).toEqual([
      503,
      expect.stringContaining('add its plugin again'),
    ])
    const change = await app.admin('PUT', '/v1/admin/backends/loro', { description: 'x' })
    expect([change.status, change.body.error.message]).toEqual([
      409,
      expect.stringContaining('no kind "parrot"'),
    ])
    await agent.client.delete(`/api/v1/credentials/${held.id}`)
    const stateOf = async () => (await app.core.store.credentials.find(held.id))?.state
    expect(await stateOf()).toBe('revoking')
    expect((await add(plugin.sha256)).status).toBe(200)
    expect((await app.admin('GET', '/v1/admin/backends/loro')).body.config.says).toBe('hello')
    app.advance(60_000)
    await app.sweep()
    expect(await stateOf()).toBe('revoked')
  })

  test('is removed once nothing needs it, with its file', async () => {
    await app.admin('DELETE', '/v1/admin/backends/loro?force=true')
    app.advance(60_000)
    await app.sweep()
    expect((await app.admin('DELETE', '/v1/admin/plugins/parrot')).status).toBe(204)
    expect(await shown()).toBeUndefined()
    expect(await readdir(directory)).toEqual([])
    expect((await entries('plugin.removed'))[0]).toMatchObject({ details: { plugin: 'parrot' } })
    expect((await app.admin('DELETE', '/v1/admin/plugins/parrot')).status).toBe(404)
  })
})

test('a second node knows a plugin that the first one added, and says that it lacks the file', async () => {
  const one = await startApp({ dialect: 'postgres' })
  const two = await startApp({
    databaseUrl: one.databaseUrl ?? '',
    masterKeyFile: join(one.directory, 'master.key'),
  })
  try {
    const sha256 = await placeArtefact(join(one.directory, 'plugins'), await parrot())
    expect((await one.admin('POST', '/v1/admin/plugins', body(sha256))).status).toBe(200)
    const config = { says: 'hello', password: 'x' }
    const create = (check: boolean) =>
      two.admin('POST', `/v1/admin/backends?check=${check}`, { type: 'parrot', config })
    expect((await create(true)).body.error.message).toContain('There is no file')
    await placeArtefact(join(two.directory, 'plugins'), await parrot())
    expect((await create(true)).status).toBe(200)
  } finally {
    await two.close()
    await one.close()
  }
})
