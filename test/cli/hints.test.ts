import { chown, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { rememberServer } from '../../src/cli/session/last-server.ts'
import { freePort } from '../support/free-port.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'
import { installCommands } from './tools-support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })

describe('with the server down', () => {
  const hintOf = (stderr: string) => /nothing is listening there\. (.*)\n$/.exec(stderr)?.[1]
  const OTHERWISE = 'or give its address with --server or MAYFLY_SERVER.'
  const GENERAL = `Start it with \`mayfly server\`, ${OTHERWISE}`

  test('names the data directory and the address that this user last started one with', async () => {
    const { home, env: bare } = await newHome()
    const listen = `127.0.0.1:${await freePort()}`
    const cwd = join(home, 'my data')
    await mkdir(cwd)
    const server = spawnCli(['server', '--listen', listen, '--data-dir', 'd'], { env: bare, cwd })
    await server.said('listening', 'stdout')
    server.child.kill('SIGTERM')
    expect(await server.ended).toMatchObject({ code: 0 })
    const at = async (url: string, ...argv: string[]) =>
      hintOf((await runCli(argv, { env: { ...bare, MAYFLY_SERVER: url } })).stderr)
    const again = `Start it with \`mayfly server --data-dir '${cwd}/d' --listen ${listen}\`, ${OTHERWISE}`
    expect(await at(`http://${listen}`, 'agent', 'ls')).toBe(again)
    expect(await at(`http://${listen}`, 'enroll', '--name', 'x')).toBe(again)
    // Another address is another server.
    expect(await at('http://127.0.0.1:9', 'agent', 'ls')).toBe(GENERAL)
    await rm(join(cwd, 'd'), { recursive: true })
    expect(await at(`http://${listen}`, 'agent', 'ls')).toBe(GENERAL)
    await rm(home, { recursive: true })
  })

  test('names no command of this machine for a server elsewhere', async () => {
    const elsewhere = { ...env, MAYFLY_SERVER: 'http://0.0.0.0:9', MAYFLY_ALLOW_HTTP: '1', MAYFLY_TOKEN: 'x' }
    expect(hintOf((await runCli(['status'], { env: elsewhere })).stderr)).toMatch(/^Check the address/)
  })

  test('a service leaves no trace of itself', async () => {
    const { home, env: bare } = await newHome()
    const last = join(home, 'cache/mayfly/last-server.json')
    const started = { dataDir: home, listen: '127.0.0.1:1' }
    await rememberServer({ env: { ...bare, INVOCATION_ID: 'x' }, home, cwd: home }, started)
    await expect(readFile(last)).rejects.toMatchObject({ code: 'ENOENT' })
    await rememberServer({ env: bare, home, cwd: home }, started)
    expect(JSON.parse(await readFile(last, 'utf8'))).toEqual(started)
    await rm(home, { recursive: true })
  })

  test.runIf(process.getuid?.() === 0)(
    'root leaves no trace in the home directory of another user, which sudo may keep',
    async () => {
      const { home, env: bare } = await newHome()
      await chown(home, 12_345, 12_345)
      await rememberServer({ env: bare, home, cwd: home }, { dataDir: home, listen: '127.0.0.1:1' })
      expect(await readdir(home)).toEqual([])
      await rm(home, { recursive: true })
    },
  )
})

describe('a login that the server refuses', () => {
  const wrong = `ckr_${'ab'.repeat(24)}`

  test('in a variable: says that it takes precedence', async () => {
    for (const argv of [
      ['get', 'demo'],
      ['agent', 'ls'],
      ['status', '--json'],
    ]) {
      const { code, stderr } = await runCli(argv, { env: { ...env, MAYFLY_TOKEN: wrong } })
      expect(code).toBe(4)
      expect(stderr).toContain(
        'MAYFLY_TOKEN is set and takes precedence over a stored login. Correct it, or unset it.',
      )
    }
  })

  test('of the host that docker or terraform asks for: names its server, and no variable for another one', async () => {
    const { home, env: bare } = await newHome()
    const installed = { ...(await installCommands({ ...world, home })), ...bare }
    const own = { ...installed, PATH: `${join(home, 'bin')}:${process.env['PATH']}` }
    const agent = await world.app.newAgent({ scopes: ['*'] })
    const at = ['--server', world.url]
    const backend = ['--backend', 'demo', ...at]
    for (const argv of [
      ['login', ...at],
      ['helper', 'docker', '--write', '--host', 'r.example', ...backend],
      ['helper', 'terraform', '--write', '--host', 'tf.example', ...backend],
    ])
      expect(await runCli(argv, { env: own, stdin: agent.token })).toMatchObject({ code: 0 })
    await world.app.admin('DELETE', `/v1/admin/agents/${agent.name}`)
    const elsewhere = { ...own, MAYFLY_SERVER: 'http://127.0.0.1:9', MAYFLY_TOKEN: 'for-another-server' }
    for (const argv of [
      ['docker-credential', 'get'],
      ['terraform-credentials', 'get', 'tf.example'],
    ]) {
      const { code, stderr } = await runCli(argv, { env: elsewhere, stdin: 'r.example' })
      expect(code).toBe(4)
      expect(stderr).toMatch(/^mayfly: [^\n]+\n$/)
      expect(stderr).toContain(`Run \`mayfly login --server ${world.url}\``)
      expect(stderr).not.toContain('MAYFLY_TOKEN')
    }
    await rm(home, { recursive: true })
  })

  test('given to `mayfly login`: asks for no other login', async () => {
    const ended = await runCli(['login', '--token-file', '-'], { env, stdin: wrong })
    expect([ended.code, ended.stderr]).toEqual([
      4,
      expect.stringContaining('Check that you copied all of the secret'),
    ])
    const both = { env: { ...env, MAYFLY_TOKEN: world.agent.token }, stdin: wrong }
    expect((await runCli(['login', '--token-file', '-'], both)).stderr).not.toContain('MAYFLY_TOKEN')
  })
})

describe('what the server refuses, in the words of the terminal', () => {
  test.each([
    [['agent', 'create', 'x', '--expires-in', '-1h'], /^mayfly: --expires-in /],
    [['agent', 'create', 'x', '--scope', 'no spaces'], /--scope/],
    [['backend', 'add', 'jwt', 'x', '--audience', 'a', '--max-ttl', 'soon'], /^mayfly: --max-ttl /],
    [['keys', 'rotate', '--grace', 'soon', '--yes'], /^mayfly: --grace /],
  ])('%j', async (argv, message) => {
    const { code, stderr } = await mayfly(...argv)
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
    expect(stderr).not.toMatch(/"[a-z]+_|in the body|\?[a-z]+=/)
  })

  test('a backend with living credentials: --force', async () => {
    await world.agent.client.post('/api/v1/credentials', { backend: 'demo' })
    expect((await mayfly('backend', 'rm', 'demo', '--yes')).stderr).toBe(
      'mayfly: This backend has living credentials: revoke them, or add --force.\n',
    )
  })
})

test('--data-dir is an option of administrators’ commands only', async () => {
  const common = (help: string) => /Options of every command:\n([\s\S]*?)\n\n/.exec(help)?.[1]
  for (const argv of [['get'], ['agent', 'ls']])
    expect(common((await mayfly(...argv, '--help')).stdout)).not.toContain('--data-dir')
  expect((await mayfly('agent', 'ls', '--help')).stdout).toContain('--data-dir <path>')
  expect(await mayfly('get', 'demo', '--data-dir', 'x')).toMatchObject({ code: 2 })
})
