import { chmod, lstat, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { run } from '../support/run-program.ts'
import { json, scripted } from '../support/scripted-server.ts'
import { expectNoSecret, newHome, runCli } from './support.ts'
import { installCommands, startToolsWorld, type ToolsWorld } from './tools-support.ts'

let world: ToolsWorld
let env: Record<string, string>
let home: string
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('images', { fields: { username: 'robot', password: 'pull-{id}' } })
  await world.add('tokens', { secret: 'tf-{id}' })
  await world.add('lines', { secret: 'two\nlines' })
})
afterAll(() => world.close())
beforeEach(async () => {
  const fresh = await newHome()
  home = fresh.home
  env = { ...(await installCommands({ ...world, home })), ...fresh.env }
  env['PATH'] = `${join(home, 'bin')}:${process.env['PATH']}`
  // The server is what the set-up remembers; the login is of the environment.
  env['MAYFLY_TOKEN'] = world.agent.token
})

const MISS = 'credentials not found in native keychain'
const config = () => join(home, '.docker', 'config.json')
const readConfig = async () => JSON.parse(await readFile(config(), 'utf8'))
const setUp = (...argv: string[]) => runCli([...argv, '--server', world.url], { env })
const docker = (operation: string, stdin = '') => runCli(['docker-credential', operation], { env, stdin })

describe('docker setup', () => {
  test('writes our map and docker’s configuration, readable by this user only', async () => {
    const end = await setUp(
      'helper',
      'docker',
      '--write',
      '--host',
      'Registry.example.com:5000',
      '--backend',
      'images',
      '--json',
    )
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(JSON.parse(end.stdout)).toEqual({
      registry: 'registry.example.com:5000',
      backend: 'images',
      config: config(),
    })
    expect(await readConfig()).toEqual({ credHelpers: { 'registry.example.com:5000': 'mayfly' } })
    expect((await stat(config())).mode & 0o777).toBe(0o600)
    const map = await readFile(join(home, 'config', 'mayfly', 'hosts.json'), 'utf8')
    expectNoSecret(map, world.agent.token)
    const { stdout } = await runCli(['helper', 'docker', '--list', '--json'], { env })
    expect(JSON.parse(stdout)).toEqual([
      { registry: 'registry.example.com:5000', backend: 'images', server: world.url },
    ])
  })

  test('keeps other settings, the mode and a link to the file; unset removes only ours', async () => {
    const real = join(home, 'dotfiles.json')
    await writeFile(real, '{"auths":{"a":{}},"credHelpers":{"gcr.io":"gcloud"}}')
    await chmod(real, 0o640)
    await mkdir(join(home, '.docker'))
    await symlink(real, config())
    await setUp('helper', 'docker', '--write', '--host', 'docker.io', '--backend', 'images')
    expect(await readConfig()).toEqual({
      auths: { a: {} },
      credHelpers: { 'gcr.io': 'gcloud', 'https://index.docker.io/v1/': 'mayfly' },
    })
    expect((await stat(real)).mode & 0o777).toBe(0o640)
    expect((await lstat(config())).isSymbolicLink()).toBe(true)
    expect((await setUp('helper', 'docker', '--remove', '--host', 'docker.io')).code).toBe(0)
    expect(await readConfig()).toEqual({ auths: { a: {} }, credHelpers: { 'gcr.io': 'gcloud' } })
    expect((await setUp('helper', 'docker', '--remove', '--host', 'docker.io')).code).toBe(2)
  })

  test.each([
    ['another helper', '{"credHelpers":{"r.example":"ecr-login"}}', ['r.example'], 1, /ecr-login/],
    ['broken JSON', '{"auths":', ['r.example'], 1, /not a valid docker configuration/],
    ['not an object', '[]', ['r.example'], 1, /not a valid docker configuration/],
    ['an invalid host', '{}', ['http://'], 2, /registry is not a valid host/],
    ['a host with a user', '{}', ['me@r.example'], 2, /registry is not a valid host/],
    ['a user name with a colon', '{}', ['r.example', '--username', 'a:b'], 2, /--username/],
  ])('%s: reports it and changes nothing', async (_, text, argv, code, words) => {
    await mkdir(join(home, '.docker'))
    await writeFile(config(), text)
    const end = await setUp('helper', 'docker', '--write', '--host', ...argv, '--backend', 'images')
    expect([end.code, end.stdout]).toEqual([code, ''])
    expect(end.stderr).toMatch(words)
    expect(await readFile(config(), 'utf8')).toBe(text)
  })

  test.each([
    ['broken JSON', '{"docker":', 0o600, /not in the format that mayfly writes/],
    ['another format', '{"docker":{"a":{"backend":1}}}', 0o600, /not in the format that mayfly writes/],
    ['a file that others can read', '{}', 0o644, /can be read by other users/],
  ])('%s in our own map is reported by every reader', async (_, text, mode, words) => {
    const path = join(home, 'config', 'mayfly', 'hosts.json')
    await mkdir(join(home, 'config', 'mayfly'), { recursive: true })
    await writeFile(path, text, { mode })
    for (const argv of [
      ['helper', 'docker', '--list'],
      ['helper', 'docker', '--remove', '--host', 'r.example'],
      ['helper', 'terraform', '--list'],
      ['helper', 'terraform', '--remove', '--host', 'r.example'],
      ['terraform-credentials', 'get', 'r.example'],
    ]) {
      const end = await setUp(...argv)
      expect([end.code, end.stdout]).toEqual([1, ''])
      expect(end.stderr).toMatch(words)
    }
    expect(await readFile(path, 'utf8')).toBe(text)
  })

  test.each([
    ['no operation', [], /argument "operation" is missing/],
    ['two ways at once', ['--write', '--list'], /mutually exclusive/],
    ['no host', ['--write', '--backend', 'images'], /--host is required/],
    ['no backend', ['--write', '--host', 'r.example'], /--backend is required/],
  ])('%s is wrong usage, for docker and terraform', async (_, argv, words) => {
    for (const tool of ['docker', 'terraform']) {
      const end = await setUp('helper', tool, ...argv)
      expect([end.code, end.stdout === '' || tool === 'docker']).toEqual([2, true])
      expect(end.stderr).toMatch(words)
    }
  })

  test('reports an unknown backend before writing anything', async () => {
    const end = await setUp('helper', 'docker', '--write', '--host', 'r.example', '--backend', 'nonsense')
    expect(end.code).toBe(1)
    await expect(stat(config())).rejects.toThrow('ENOENT')
  })
})

describe('docker-credential', () => {
  beforeEach(() => setUp('helper', 'docker', '--write', '--host', 'r.example:5000', '--backend', 'images'))

  test.each(['r.example:5000', 'https://r.example:5000', 'R.EXAMPLE:5000/v2/\n'])(
    'get answers for %j',
    async (asked) => {
      const end = await docker('get', asked)
      expect([end.code, end.stderr]).toEqual([0, ''])
      expect(JSON.parse(end.stdout)).toEqual({
        ServerURL: asked.trim(),
        Username: 'robot',
        Secret: expect.stringMatching(/^pull-cred_/),
      })
      expect((await docker('get', asked)).stdout).toBe(end.stdout)
    },
  )

  test.each([
    'r.example',
    'r.example:5001',
    'evil.example',
    'r.example:5000.evil.example',
    '',
    '\0',
    '../x',
    '{}',
  ])('get of %j misses, with the exact text', async (asked) => {
    const end = await docker('get', asked)
    expect(end).toEqual({ code: 1, stdout: `${MISS}\n`, stderr: '' })
  })

  test('reports an error on both streams, for clients that read only one', async () => {
    env['MAYFLY_TOKEN'] = 'ckr_wrong'
    const end = await docker('get', 'r.example:5000')
    expect(end.code).toBe(4)
    expect(end.stdout).not.toContain(MISS)
    expect(end.stdout.trim()).not.toBe('')
    expect(end.stderr).toContain(end.stdout.trim())
    expectNoSecret(end.stdout + end.stderr, 'ckr_wrong')
  })

  test('neutralises terminal control characters from a server', async () => {
    const evil = await scripted(
      json(403, { error: { code: 'not_allowed', message: 'No\x1b]0;evil\x07\nnow.' } }),
    )
    env['MAYFLY_SERVER'] = evil.url
    const argv = ['docker-credential', 'get', '--server', evil.url]
    const end = await runCli(argv, { env, stdin: 'r.example:5000' })
    expect(end).toMatchObject({ code: 5, stdout: 'No\ufffd]0;evil\ufffd now.\n' })
    await evil.close()
  })

  test('list names the registries, store accepts only what get answered', async () => {
    await setUp(
      'helper',
      'docker',
      '--write',
      '--host',
      'docker.io',
      '--backend',
      'tokens',
      '--username',
      'me',
    )
    expect(JSON.parse((await docker('list')).stdout)).toEqual({
      'r.example:5000': 'mayfly',
      'docker.io': 'me',
    })
    const hub = JSON.parse((await docker('get', 'https://index.docker.io/v1/')).stdout)
    expect(hub).toMatchObject({ Username: 'me', Secret: expect.stringMatching(/^tf-cred_/) })
    expect(await docker('store', JSON.stringify(hub))).toEqual({ code: 0, stdout: '', stderr: '' })
    for (const other of [
      { ...hub, Secret: 'hunter2' },
      { ...hub, ServerURL: 'evil.example' },
    ]) {
      const end = await docker('store', JSON.stringify(other))
      expect(end.code).toBe(1)
      expectNoSecret(end.stdout + end.stderr, 'hunter2', hub.Secret)
    }
    expect((await docker('store', 'nonsense')).code).toBe(2)
  })

  test('erase revokes only the credential of this registry', async () => {
    await setUp(
      'helper',
      'docker',
      '--write',
      '--host',
      'other.example',
      '--backend',
      'images',
      '--ttl',
      '20m',
    )
    const [one, other] = [await docker('get', 'r.example:5000'), await docker('get', 'other.example')]
    const idOf = (text: string) => JSON.parse(text).Secret.slice('pull-'.length)
    expect(await docker('erase', 'r.example:5000')).toEqual({ code: 0, stdout: '', stderr: '' })
    const alive = await world.alive('images')
    expect([alive.includes(idOf(one.stdout)), alive.includes(idOf(other.stdout))]).toEqual([false, true])
    expect((await docker('get', 'r.example:5000')).stdout).not.toBe(one.stdout)
    expect(await docker('erase', 'evil.example')).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('refuses an unknown operation, and a secret that docker cannot use', async () => {
    const none = await docker('dance')
    expect([none.code, none.stdout]).toEqual([2, ''])
    await setUp('helper', 'docker', '--write', '--host', 'lines.example', '--backend', 'lines')
    const end = await docker('get', 'lines.example')
    expect(end.code).toBe(1)
    expectNoSecret(end.stdout + end.stderr, 'two')
  })

  test('works under the name that docker runs', async () => {
    const end = await run(['docker-credential-mayfly', 'get'], env, { stdin: 'r.example:5000\n' })
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(JSON.parse(end.stdout)).toMatchObject({ Username: 'robot' })
    const miss = await run(['docker-credential-mayfly', 'get'], env, { stdin: 'evil.example' })
    expect(miss).toEqual({ code: 1, stdout: `${MISS}\n`, stderr: '' })
  })

  test('--server takes precedence over the server of the set-up', async () => {
    const argv = ['docker-credential', 'get', '--server', 'http://127.0.0.1:1']
    env['MAYFLY_SERVER'] = 'http://127.0.0.1:1'
    expect((await runCli(argv, { env, stdin: 'r.example:5000' })).code).toBe(3)
  })
})

describe('terraform', () => {
  const rc = () => join(home, '.terraformrc')
  const helper = () => join(home, '.terraform.d', 'plugins', 'terraform-credentials-mayfly')
  const ask = (...argv: string[]) => runCli(['terraform-credentials', ...argv], { env })
  const setup = (host = 'tf.example.com', backend = 'tokens') =>
    setUp('helper', 'terraform', '--write', '--host', host, '--backend', backend)

  test('setup writes the helper and the block once; unset of the last host removes both', async () => {
    await writeFile(rc(), '# credentials_helper "old" {}\nplugin_cache_dir = "/tmp"')
    expect(await setup()).toMatchObject({ code: 0, stderr: '' })
    expect(await setup('other.example.com:8443')).toMatchObject({ code: 0, stderr: '' })
    expect(await readFile(rc(), 'utf8')).toBe(
      '# credentials_helper "old" {}\nplugin_cache_dir = "/tmp"\ncredentials_helper "mayfly" {}\n',
    )
    expect((await stat(helper())).mode & 0o777).toBe(0o755)
    const { stdout } = await run([helper(), 'get', 'tf.example.com'], env)
    expect(JSON.parse(stdout)).toEqual({ token: expect.stringMatching(/^tf-cred_/) })
    const list = JSON.parse((await runCli(['helper', 'terraform', '--list', '--json'], { env })).stdout)
    expect(list.map((one: { host: string }) => one.host)).toEqual([
      'tf.example.com',
      'other.example.com:8443',
    ])
    for (const host of ['tf.example.com', 'other.example.com:8443']) {
      expect(await readFile(rc(), 'utf8')).toContain('credentials_helper "mayfly"')
      expect((await setUp('helper', 'terraform', '--remove', '--host', host)).code).toBe(0)
    }
    expect(await readFile(rc(), 'utf8')).not.toContain('"mayfly"')
    await expect(stat(helper())).rejects.toThrow('ENOENT')
  })

  test('get, store, forget', async () => {
    await setup()
    const first = await ask('get', 'tf.example.com')
    expect([first.code, first.stderr]).toEqual([0, ''])
    const { token } = JSON.parse(first.stdout)
    expect((await ask('get', 'TF.example.com:443')).stdout).toBe(first.stdout)
    const store = await runCli(['terraform-credentials', 'store', 'tf.example.com'], {
      env,
      stdin: '{"token":"mine"}',
    })
    expect([store.code, store.stdout]).toEqual([1, ''])
    expect(await ask('forget', 'tf.example.com')).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(await world.alive('tokens')).not.toContain(token.slice('tf-'.length))
    expect((await ask('get', 'tf.example.com')).stdout).not.toBe(first.stdout)
  })

  test('returns nothing for other hosts, without failing', async () => {
    await setup()
    for (const host of [
      'evil.example',
      'tf.example.com:444',
      'tf.example.com.evil',
      '-x',
      '../tf.example.com',
    ])
      expect(await ask('get', '--', host)).toEqual({ code: 0, stdout: '{}\n', stderr: '' })
    expect(await ask('forget', 'evil.example')).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('prints nothing on standard output when it fails', async () => {
    await setup('lines.example.com', 'lines')
    for (const [argv, code] of [
      [['get', 'lines.example.com'], 1],
      [['dance', 'tf.example.com'], 2],
      [['get'], 2],
    ] as const) {
      const end = await ask(...argv)
      expect([end.code, end.stdout]).toEqual([code, ''])
    }
    await writeFile(rc(), 'credentials_helper "vault" {\n}\n')
    const other = await setup()
    expect([other.code, other.stdout]).toEqual([1, ''])
    expect(other.stderr).toContain('"vault"')
    expect(await readFile(rc(), 'utf8')).toBe('credentials_helper "vault" {\n}\n')
  })
})
