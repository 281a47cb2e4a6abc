import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { placeArtefact } from '../../src/app/plugins/artefacts.ts'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import { type PluginRedis, startPluginRedis } from '../support/built-plugin.ts'
import { builtPlugin, canBuild } from '../support/plugins/build.ts'

describe.skipIf(!(await canBuild('creddy-redis')))('a binary of the existing protocol on a server', () => {
  let app: TestApp
  let redis: PluginRedis
  beforeAll(async () => {
    app = await startApp({ argv: { upstreamTimeout: '2s' } })
    redis = await startPluginRedis()
  })
  afterAll(async () => {
    await app?.close()
    await redis?.stop()
  })

  it('is added, issues, revokes', async () => {
    const bytes = await readFile(await builtPlugin('creddy-redis'))
    const sha256 = await placeArtefact(join(app.directory, 'plugins'), bytes)
    const kind = 'creddy-redis'
    const added = await app.admin('POST', '/v1/admin/plugins', {
      ...{ sha256, runtime: 'executable', protocol: 'creddy.plugin.v1' },
      origin: 'file:creddy-redis',
    })
    expect([added.status, added.body.name]).toEqual([200, kind])
    await app.newBackend({ type: kind, name: 'store', config: redis.config })
    const shown = await app.admin('GET', '/v1/admin/backends/store')
    expect(JSON.stringify(shown.body)).not.toContain(redis.config.password)
    const agent = await app.newAgent({ scopes: ['store:shop:read'] })
    const issued = await agent.client.post('/api/v1/credentials', {
      backend: 'store',
      scopes: ['store:shop:read'],
    })
    expect(issued.status, issued.text).toBe(201)
    const login = new URL(issued.body.token)
    expect(login.username).toContain(agent.name)
    expect(await redis.canRead(login, 'shop')).toBe(true)
    const revoked = await agent.client.delete(`/api/v1/credentials/${issued.body.id}`)
    expect(revoked.status, revoked.text).toBe(200)
    expect(await redis.users('creddy-')).toEqual([])
  })

  it('says of an issue without an answer in time that nobody can find what it left', async () => {
    await app.newBackend({
      type: 'creddy-redis',
      name: 'slow',
      config: { ...redis.config, delay_ms: 60_000 },
    })
    const agent = await app.newAgent({ scopes: ['slow:shop:read'] })
    const issuing = agent.client.post('/api/v1/credentials', { backend: 'slow', scopes: ['slow:shop:read'] })
    await eventually(async () => expect(await redis.users('creddy-')).toHaveLength(1))
    expect((await issuing).status).toBeGreaterThanOrEqual(502)
    const { body } = await app.admin('GET', '/v1/admin/audit?action=credential.issue_failed')
    expect(body[0].details).toMatchObject({ recover: 'none' })
  })
})

describe.skipIf(!(await canBuild('creddy-github')))('a binary whose name is that of a kind of ours', () => {
  let app: TestApp
  let sha256: string
  beforeAll(async () => {
    app = await startApp()
    const bytes = await readFile(await builtPlugin('creddy-github'))
    sha256 = await placeArtefact(join(app.directory, 'plugins'), bytes)
  })
  afterAll(() => app?.close())

  const add = (more: object = {}) =>
    app.admin('POST', '/v1/admin/plugins', {
      ...{ sha256, runtime: 'executable', protocol: 'creddy.plugin.v1', origin: 'file:creddy-github' },
      ...more,
    })

  it('is refused under its own name, and the refusal says how to give it another', async () => {
    const { status, body } = await add()
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('--as NAME')])
    const bytes = await readFile(await builtPlugin('creddy-github'))
    await placeArtefact(join(app.directory, 'plugins'), bytes)
  })

  it('is a kind of the name that it was given, and still gets its own name in scopes', async () => {
    const added = await add({ as: 'hub', name: 'github' })
    expect(added.status, added.text).toBe(200)
    expect(added.body).toMatchObject({ name: 'hub', own_name: 'github', version: 'dev' })
    const kinds = (await app.admin('GET', '/v1/admin/kinds')).body
    const scopes = kinds.find(({ type }: { type: string }) => type === 'hub').scopes
    expect(JSON.stringify(scopes)).toContain('<owner>/<repo>')
    const config = { app_id: 12, private_key_pem: 'the-key-of-the-app', installation_id: 34 }
    await app.newBackend({ type: 'hub', name: 'code', config })
    const agent = await app.newAgent({ scopes: ['code:me/*', 'code:*:read'] })
    const issue = (scope: string) =>
      agent.client.post('/api/v1/credentials', { backend: 'code', scopes: [scope], ttl: '5m' })
    for (const [scope, asked] of [
      ['me/app', 'github:me/app'],
      ['me/app:read', 'github:me/app:read'],
      ['code:me/*', 'github:me/*'],
      ['*:read', 'github:*:read'],
    ]) {
      const issued = await issue(scope ?? '')
      expect(issued.status, issued.text).toBe(201)
      expect(issued.body.token).toMatch(/^ghs_/)
      // The upstream ends it later than we do.
      const { expires_at: ends, upstream_expires_at: theirs } = issued.body
      expect(Date.parse(theirs) - Date.parse(ends)).toBeGreaterThan(50 * 60_000)
      const { body } = await app.admin('GET', '/v1/admin/audit?action=credential.issued&limit=1')
      expect(body[0].details).toMatchObject({ asked: `${asked} of ${agent.name}`, installation_id: '34' })
      const revoked = await agent.client.delete(`/api/v1/credentials/${issued.body.id}`)
      expect(revoked.body).toMatchObject({ revoked: true, upstream: 'revoked' })
    }
  })

  it('takes texts that may name a host only from full administrators', async () => {
    const config = { app_id: 12, private_key_pem: 'the-key-of-the-app' }
    const agent = await app.newAgent({ scopes: ['admin:backends:write', 'inside', 'outside'] })
    const create = (name: string, more: object) =>
      agent.client.post('/v1/admin/backends', { type: 'hub', name, config: { ...config, ...more } })
    for (const url of ['http://169.254.169.254/latest', 'http://127.0.0.1:8080', 'metadata.example', 'x']) {
      const { status, body } = await create('inside', { api_url: url })
      expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
      expect(body.error.message).toContain('"api_url"')
    }
    const made = await create('outside', {})
    expect(made.status, made.text).toBe(200)
    const local = { type: 'hub', name: 'inside', config: { ...config, api_url: 'http://127.0.0.1:8080' } }
    expect((await app.admin('POST', '/v1/admin/backends', local)).status).toBe(200)
  })

  it('is replaced under that name only by what calls itself the same', async () => {
    const bytes = await readFile(await builtPlugin('creddy-redis'))
    const other = await placeArtefact(join(app.directory, 'plugins'), bytes)
    const { status, body } = await add({ sha256: other, as: 'hub' })
    expect([status, body.error.message]).toEqual([409, expect.stringContaining('calls itself "github"')])
  })
})
