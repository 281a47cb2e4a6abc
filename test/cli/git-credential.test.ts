import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { NewAgent } from '../support/app.ts'
import { json, problem, scripted } from '../support/scripted-server.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'
import { startToolsWorld } from './tools-support.ts'

const ARGV = ['git-credential', '--host', 'git.example.com', '--backend', 'demo']
const ASKED = 'protocol=https\nhost=git.example.com\n\n'

let world: World
let agent: NewAgent
let home: string
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  await world.app.newBackend({ name: 'closed' })
})
afterAll(() => world.close())
beforeEach(async () => {
  agent = await world.app.newAgent({ scopes: ['demo:*'] })
  const fresh = await newHome()
  home = fresh.home
  env = { ...fresh.env, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: agent.token }
  return () => rm(home, { recursive: true, force: true })
})

const call = (operation: string, stdin = ASKED, more: object = {}) =>
  runCli([...ARGV, operation], { env, stdin, ...more })
const passwordOf = (stdout: string) => /^password=(.+)$/m.exec(stdout)?.[1] ?? ''
const active = async () => (await agent.client.get('/v1/active')).body.length

describe('get', () => {
  test('answers in the format of git, with a valid password', async () => {
    const { code, stdout, stderr } = await call('get')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^username=x-access-token\npassword=eyJ[\w-]+\.[\w-]+\.[\w-]+\npassword_expiry_utc=\d{10}\n$/,
    )
    const [credential] = (await agent.client.get('/v1/active')).body
    expect(stdout).toContain(`password_expiry_utc=${Math.floor(Date.parse(credential.expires_at) / 1_000)}\n`)
  })

  test('answers the same from a private file, and a new one before the end', async () => {
    const first = passwordOf((await call('get')).stdout)
    expect(passwordOf((await call('get')).stdout)).toBe(first)
    expect(await active()).toBe(1)
    const cache = join(home, 'cache', 'mayfly')
    const files = (await readdir(cache, { recursive: true, withFileTypes: true })).filter((one) =>
      one.isFile(),
    )
    expect(files.length).toBeGreaterThan(0)
    for (const file of files)
      expect((await stat(join(file.parentPath, file.name))).mode & 0o777, file.name).toBe(0o600)
    const later = passwordOf((await call('get', ASKED, { ahead: 9.5 * 60_000 })).stdout)
    expect(later).not.toBe(first)
  })

  test('keeps a credential per login, backend and scope', async () => {
    const mine = passwordOf((await call('get')).stdout)
    const other = await world.app.newAgent({ scopes: ['demo:*'] })
    const theirs = await runCli([...ARGV, 'get'], {
      env: { ...env, MAYFLY_TOKEN: other.token },
      stdin: ASKED,
    })
    const narrow = await runCli([...ARGV, '--scope', 'read', '--ttl', '5m', 'get'], { env, stdin: ASKED })
    const claims = JSON.parse(
      Buffer.from(passwordOf(narrow.stdout).split('.')[1] ?? '', 'base64url').toString(),
    )
    expect([claims.scope, claims.exp - claims.iat]).toEqual(['read', 300])
    expect(new Set([mine, passwordOf(theirs.stdout), passwordOf(narrow.stdout)]).size).toBe(3)
  })

  test.each([
    'protocol=https\nhost=evil.example\n\n',
    'protocol=http\nhost=git.example.com\n\n',
    'protocol=https\nhost=git.example.com.evil.example\n\n',
    'protocol=https\nhost=evil.example\nhost=git.example.com.evil.example\n\n',
    'host=git.example.com\n\n',
    'protocol=cert\nhost=\npath=/etc/x\n\n',
    '\nprotocol=https\nhost=git.example.com\n\n',
    '',
  ])('is silent for %j', async (stdin) => {
    expect(await call('get', stdin)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await active()).toBe(0)
  })

  test.each<[string, Record<string, string>, string[], number, RegExp]>([
    ['a server that is away', { MAYFLY_SERVER: 'http://127.0.0.1:1' }, [], 3, /Cannot reach/],
    ['no login', { MAYFLY_TOKEN: '' }, [], 4, /You are not logged in/],
    [
      'a wrong login',
      { MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` },
      [],
      4,
      /MAYFLY_TOKEN is set and takes precedence/,
    ],
    ['an unknown backend', {}, ['--backend', 'none'], 1, /no such backend/],
    ['a backend without a scope', {}, ['--backend', 'closed'], 5, /mayfly request/],
    ['a ttl too long', {}, ['--ttl', '20h'], 5, /ttl/],
    ['a param that is none', {}, ['--param', 'x'], 2, /--param takes name=text/],
  ])(
    'with %s reports one line and stops git from asking elsewhere',
    async (_name, wrong, more, exit, said) => {
      const { code, stdout, stderr } = await runCli([...ARGV, ...more, 'get'], {
        env: { ...env, ...wrong },
        stdin: ASKED,
      })
      expect([code, stdout]).toEqual([exit, 'quit=1\n'])
      expect(stderr).toMatch(said)
      expect(stderr.trim().split('\n')).toHaveLength(1)
      expect(stderr).not.toMatch(/ckr_|eyJ/)
    },
  )
})

describe('store and erase', () => {
  test('store does nothing, like unknown operations of a later git', async () => {
    for (const operation of ['store', 'capability', 'anything'])
      expect(await call(operation)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await active()).toBe(0)
    expect(await readdir(home)).not.toContain('cache')
  })

  test('erase revokes and drops the refused credential', async () => {
    const refused = passwordOf((await call('get')).stdout)
    const [credential] = (await agent.client.get('/v1/active')).body
    const request = `protocol=https\nhost=git.example.com\nusername=x-access-token\npassword=${refused}\n\n`
    expect(await call('erase', request)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect((await agent.client.get(`/api/v1/credentials/${credential.id}`)).body.status).toBe('revoked')
    expect(passwordOf((await call('get')).stdout)).not.toBe(refused)
    const files = await readdir(join(home, 'cache'), { recursive: true, withFileTypes: true })
    for (const file of files.filter((one) => one.isFile()))
      expect(await readFile(join(file.parentPath, file.name), 'utf8')).not.toContain(refused)
  })

  test('erase without a password revokes only the credential of this login', async () => {
    await call('get')
    const other = await world.app.newAgent({ scopes: ['demo:*'] })
    await runCli([...ARGV, 'get'], { env: { ...env, MAYFLY_TOKEN: other.token }, stdin: ASKED })
    expect((await call('erase')).code).toBe(0)
    expect(await active()).toBe(0)
    expect((await other.client.get('/v1/active')).body).toHaveLength(1)
  })

  test('erase with another password or for another host revokes nothing', async () => {
    await call('get')
    for (const request of [
      `${ASKED.trimEnd()}\npassword=other\n\n`,
      'protocol=https\nhost=evil.example\n\n',
      `protocol=https\nhost=evil.example\npassword=${passwordOf((await call('get')).stdout)}\n\n`,
    ])
      expect(await call('erase', request)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await active()).toBe(1)
  })

  test('erase drops the credential and reports that the server cannot be reached', async () => {
    const gone = await startWorld()
    try {
      const own = { ...env, MAYFLY_SERVER: gone.url, MAYFLY_TOKEN: gone.agent.token }
      expect((await runCli([...ARGV, 'get'], { env: own, stdin: ASKED })).code).toBe(0)
      await gone.app.close()
      const { code, stderr } = await runCli([...ARGV, 'erase'], { env: own, stdin: ASKED })
      expect(code).toBe(3)
      expect(stderr).toMatch(/Cannot reach/)
      const again = await runCli([...ARGV, 'get'], { env: own, stdin: ASKED })
      expect([again.code, again.stdout]).toEqual([3, 'quit=1\n'])
    } finally {
      await rm(gone.home, { recursive: true, force: true })
    }
  })
})

test('revokes what git cannot use, even without a cache', async () => {
  const tools = await startToolsWorld()
  await tools.add('lines', { secret: 'two\nlines' })
  for (const cache of [join(home, 'cache'), '/dev/null/cache']) {
    const { code, stdout, stderr } = await runCli(
      ['git-credential', '--host', 'git.example.com', '--backend', 'lines', 'get'],
      { env: { ...tools.env, XDG_CACHE_HOME: cache }, stdin: ASKED },
    )
    expect([code, stdout]).toEqual([1, 'quit=1\n'])
    expect(stderr).toMatch(/several lines/)
    expect(await tools.alive()).toEqual([])
  }
  await tools.close()
})

test('answers after the empty line even if the pipe stays open', async () => {
  const it = spawnCli([...ARGV, 'get'], { env, stdin: 'open' })
  it.child.stdin?.write('protocol=https\nhost=git.exa')
  it.child.stdin?.write('mple.com\n\n')
  expect(await it.said('password_expiry_utc=', 'stdout')).toMatch(/^username=x-access-token\npassword=/)
  expect((await it.ended).code).toBe(0)
})

test('erase tries to revoke all, even if the first fails', async () => {
  const issued = (id: string) => {
    const [created_at, expires_at] = [0, 600_000].map((ms) => new Date(Date.now() + ms).toISOString())
    return json(201, { id, token: 'secret', backend: 'demo', scopes: [], ttl: '10m', created_at, expires_at })
  }
  const server = await scripted(
    issued('cred_1'),
    issued('cred_2'),
    problem(500, 'internal_error'),
    json(200, { id: 'cred', revoked: true }),
  )
  const own = { ...env, MAYFLY_SERVER: server.url }
  for (const scope of ['demo:a', 'demo:b'])
    await runCli([...ARGV, '--scope', scope, 'get'], { env: own, stdin: ASKED })
  const { code, stderr } = await runCli([...ARGV, 'erase'], { env: own, stdin: ASKED })
  const [first, second] = server.seen.slice(2).map(({ url }) => url.split('/').at(-1))
  expect([first, second].sort()).toEqual(['cred_1', 'cred_2'])
  expect(code).toBe(1)
  expect(stderr).toMatch(new RegExp(`^mayfly: ${first} was not revoked\\.\\nmayfly: Says internal_error`))
  await server.close()
})

test.each([
  ['no host', ['git-credential', '--backend', 'demo', 'get']],
  ['no backend', ['git-credential', '--host', 'git.example.com', 'get']],
  ['plain http', ['git-credential', '--host', 'http://git.example.com', '--backend', 'demo', 'get']],
  ['no operation', ['git-credential', '--host', 'git.example.com', '--backend', 'demo']],
])('%s is wrong usage', async (_name, argv) => {
  const { code, stdout } = await runCli(argv, { env, stdin: ASKED })
  expect([code, stdout]).toEqual([2, ''])
})
