import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { newAuthority } from '../cli/certificates.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { startOpenAi } from '../support/fakes/openai.ts'
import { newSigner, times } from '../support/identity-tokens.ts'
import { AUDIENCE } from '../support/preset-tokens.ts'

const OPENAI = new URL('../../src/backends/http/recipes/openai.yaml', import.meta.url)
const POLICY = (scope: string) =>
  `policies: [{ name: ci, pattern: "ci-*", scopes: ["${scope}"], auto_approve: true }]\n`

let folder: string
let file: string
let app: TestApp
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-reload-'))
  file = join(folder, 'mayfly.yaml')
})
afterEach(() => app?.close())
afterAll(() => rm(folder, { recursive: true, force: true }))

async function start(yaml: string, argv: Record<string, unknown> = {}): Promise<void> {
  await writeFile(file, yaml)
  app = await startApp({ argv: { config: file, ...argv } })
}

async function reload(yaml?: string) {
  if (yaml !== undefined) await writeFile(file, yaml)
  const reply = await app.local.post('/v1/admin/reload')
  expect(reply.status).toBe(200)
  return reply.body as { changed: string[]; skipped: Fault[]; faults: Fault[] }
}

interface Fault {
  readonly source: string
  readonly message: string
}

const entries = async () => (await app.local.get('/v1/admin/audit?action=server.reloaded')).body
const policies = async () => (await app.local.get('/v1/admin/policies')).body

describe('what a reload takes', () => {
  test('policies, limits and the log level, with one entry', async () => {
    await start(POLICY('demo'))
    const agent = await app.newAgent({ scopes: ['*'] })
    const backend = await app.newBackend()
    const issue = () => agent.client.post('/api/v1/credentials', { backend })
    expect((await issue()).status).toBe(201)
    const next = `${POLICY('other')}limits: { max_active_per_agent: 1, issue_rate: 900/minute }\nlog_level: error\n`
    expect(await reload(next)).toEqual({
      changed: ['log_level', 'limits.max_active_per_agent', 'limits.issue_rate', 'policies'],
      skipped: [],
      faults: [],
    })
    expect(await policies()).toMatchObject([{ name: 'ci', scopes: ['other'] }])
    expect((await issue()).status).toBe(429)
    app.core.log.warn({}, 'too quiet to be heard')
    expect(app.logged()).not.toContain('too quiet')
    const [entry, ...others] = await entries()
    expect(others).toEqual([])
    expect(entry).toMatchObject({
      outcome: 'ok',
      auth_method: 'unix_socket',
      details: { changed: expect.arrayContaining(['policies']) },
    })
    expect((await reload('log_level: debug\n')).changed).toContain('log_level')
    app.core.log.child({ part: 'x' }).warn({}, 'loud again')
    expect(app.logged()).toContain('loud again')
  })

  test('bounds of a policy, for an agent that the server knows already', async () => {
    const bounded = (more: string) =>
      `policies: [{ name: ci, pattern: "ci-*", scopes: ["*"], auto_approve: true${more} }]\n`
    await start(bounded(''))
    const backend = await app.newBackend()
    const agent = await app.newAgent({ scopes: ['*'] })
    // As it would have enrolled.
    await app.core.store.commit([
      { op: 'run', sql: `UPDATE agents SET policy = 'ci'`, params: [], rows: 1 },
      { op: 'invalidate' },
    ])
    const issue = () => agent.client.post('/api/v1/credentials', { backend, ttl: '10m' })
    expect((await issue()).status).toBe(201)
    await reload(bounded(', max_ttl: 5m'))
    expect((await issue()).body.error?.code).toBe('ttl_exceeded')
  })

  test('whose tokens are trusted', async () => {
    const signer = newSigner('ES256')
    const entry = {
      name: 'ci',
      issuer: 'https://issuer.test',
      audience: AUDIENCE,
      subject: 'job',
      agent: 'ci',
    }
    const trusting = (subject: string) =>
      JSON.stringify({ identities: [{ ...entry, subject, scopes: ['demo'], jwks: { keys: [signer.jwk] } }] })
    await start('')
    const logIn = async () => {
      const claims = { iss: 'https://issuer.test', sub: 'job', aud: AUDIENCE, jti: randomUUID() }
      const form = {
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: signer.sign({ ...claims, ...times(app.core.store.now()) }),
      }
      return (await fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) }))
        .status
    }
    expect(await logIn()).toBe(400)
    expect((await reload(trusting('job'))).changed).toEqual(['identities'])
    expect(await logIn()).toBe(200)
    expect((await reload(`${trusting('job').slice(0, -1)}, "unknown": 1}`)).faults).toHaveLength(1)
    expect(await logIn()).toBe(200)
    await reload(trusting('another-job'))
    expect(await logIn()).toBe(400)
  })

  test('connections', async () => {
    await start('')
    expect(app.app.http.server.server.maxConnections).toBe(10_000)
    await reload('limits: { max_connections: 12 }\n')
    expect(app.app.http.server.server.maxConnections).toBe(12)
  })

  test('a new certificate in the same files; open connections keep theirs', async () => {
    const authority = await newAuthority(folder)
    const first = await authority.issue({ name: 'first', ips: ['127.0.0.1'] })
    const second = await authority.issue({ name: 'second', ips: ['127.0.0.1'] })
    const [cert, key] = [join(folder, 'tls.pem'), join(folder, 'tls.key')]
    const put = async (from: typeof first) => {
      await writeFile(cert, await readFile(from.certFile))
      await writeFile(key, await readFile(from.keyFile))
    }
    await put(first)
    await start(`tls_cert_file: ${cert}\ntls_key_file: ${key}\n`)
    const { port } = new URL(app.url)
    const shown = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false })
        socket.once('secureConnect', () => {
          resolve(String(socket.getPeerCertificate().subject.CN))
          socket.destroy()
        })
        socket.once('error', reject)
      })
    expect(await shown()).toBe('first')
    // The key of another certificate: nothing changes.
    await writeFile(cert, await readFile(second.certFile))
    expect((await reload()).faults).toEqual([
      { source: 'tls_key_file', message: expect.stringContaining('is not the key of the certificate') },
    ])
    expect(await shown()).toBe('first')
    await put(second)
    expect((await reload()).changed).toEqual(['tls_cert_file', 'tls_key_file'])
    expect(await shown()).toBe('second')
    expect((await reload()).changed).toEqual([])
    // Whether there is TLS at all is another matter.
    const { faults } = await reload('{}\n')
    expect(faults.map(({ message }) => message)).toEqual([
      'whether the server uses TLS has changed, which takes effect only with a restart',
    ])
  })

  test('recipes: a faulty one breaks its backends only, and is whole again once repaired', async () => {
    const fake = await startOpenAi(['proj_abc'])
    const recipes = join(folder, 'recipes')
    await mkdir(recipes)
    const recipe = async (type: string) => {
      const text = (await readFile(OPENAI, 'utf8')).replace('type: openai', `type: ${type}`)
      await writeFile(join(recipes, `${type}.yaml`), text)
      return text
    }
    try {
      const acme = await recipe('acme')
      await start(`recipes_dir: ${recipes}\n`)
      const config = { admin_key: fake.adminKey, base_url: fake.api.url, local: true, projects: ['proj_abc'] }
      await app.newBackend({ type: 'acme', name: 'one', config })
      await recipe('brand-new')
      expect((await reload()).changed).toEqual(['recipes_dir'])
      await app.newBackend({ type: 'brand-new', name: 'two', config })
      const opened = (await app.core.backends.at(await app.core.store.generation())).byName.get('two')
      const agent = await app.newAgent({ scopes: ['one', 'two'] })
      const issue = async (backend: string) =>
        (await agent.client.post('/api/v1/credentials', { backend, scopes: ['proj_abc'] })).status

      await writeFile(join(recipes, 'acme.yaml'), acme.replace('title: ', 'titel: '))
      const broken = await reload()
      expect(broken.skipped).toEqual([
        { source: `${recipes}/acme.yaml:2:1`, message: 'the recipe lacks title' },
        { source: `${recipes}/acme.yaml:3:1`, message: 'titel is not known here' },
      ])
      expect(app.logged()).toContain('a recipe is faulty')
      expect(await issue('one')).toBe(503)
      expect(await issue('two')).toBe(201)
      // What has not changed stays open.
      expect((await app.core.backends.at(await app.core.store.generation())).byName.get('two')).toBe(opened)

      await writeFile(join(recipes, 'acme.yaml'), acme)
      expect((await reload()).skipped).toEqual([])
      expect(await issue('one')).toBe(201)
    } finally {
      fake.api.close()
    }
  })
})

describe('what changes nothing', () => {
  test.each([
    ['an unknown key', 'polices: []\n', /mayfly\.yaml:1:1/],
    ['a value of the wrong shape', 'log_level: loud\n', /mayfly\.yaml:1:12/],
    ['text that is not YAML', 'policies: [\n', /mayfly\.yaml:\d+:\d+/],
    ['a directory of recipes that is not there', 'recipes_dir: /nonexistent\n', /recipes_dir/],
  ])('%s', async (_what, yaml, where) => {
    await start(POLICY('demo'))
    const { changed, faults } = await reload(`${yaml}`)
    expect(changed).toEqual([])
    expect(faults[0]?.source).toMatch(where)
    expect(app.logged()).toContain('nothing was reloaded')
    expect(await policies()).toMatchObject([{ scopes: ['demo'] }])
    expect(await entries()).toMatchObject([{ outcome: 'failed' }])
  })

  test('a change that needs a restart is named, and takes the rest of the file with it', async () => {
    await start(POLICY('demo'))
    const { faults } = await reload(`${POLICY('other')}retention: 30d\nupstream_timeout: 7s\n`)
    expect(faults).toEqual([
      {
        source: `${file}:2:12`,
        message: 'retention has changed, which takes effect only with a restart',
      },
      {
        source: `${file}:3:19`,
        message: 'upstream_timeout has changed, which takes effect only with a restart',
      },
    ])
    expect(await policies()).toMatchObject([{ scopes: ['demo'] }])
    // Once it is taken back, the rest is taken.
    expect((await reload(POLICY('other'))).changed).toEqual(['policies'])
  })
})

test('nobody but the socket reloads: neither the local host nor a token with every admin scope', async () => {
  await start('')
  const root = await app.newAgent({ scopes: ['admin'] })
  const by = await root.client.post('/v1/admin/reload')
  expect([by.status, by.body.error.code]).toEqual([403, 'not_allowed'])
  const { port } = new URL(app.url)
  const local = await app.raw({
    method: 'POST',
    path: '/v1/admin/reload',
    headers: { host: `127.0.0.1:${port}` },
  })
  expect([401, 403]).toContain(local.status)
  expect(await entries()).not.toContainEqual(expect.objectContaining({ outcome: 'ok' }))
})

test('no request fails while the server is reloaded again and again', async () => {
  await start(POLICY('demo'))
  const backend = await app.newBackend()
  const agents = await Promise.all(Array.from({ length: 4 }, () => app.newAgent({ scopes: ['*'] })))
  let isOver = false
  const statuses = new Map<number, number>()
  const load = agents.map(async ({ client }) => {
    while (!isOver) {
      const { status } = await client.post('/api/v1/credentials', { backend })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  for (let round = 0; round < 25; round += 1) {
    const { faults } = await reload(
      round % 5 === 4 ? 'policies: nonsense\n' : `${POLICY(`demo:${round}`)}log_level: debug\n`,
    )
    expect(faults.length > 0).toBe(round % 5 === 4)
  }
  isOver = true
  await Promise.all(load)
  expect([...statuses.keys()]).toEqual([201])
  expect(statuses.get(201)).toBeGreaterThan(25)
})
