import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { run } from '../support/run-program.ts'
import { expectNoSecret, runCli } from './support.ts'
import { installCommands, startToolsWorld, type ToolsWorld } from './tools-support.ts'

let world: ToolsWorld
let env: Record<string, string>
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('key', { secret: 'sk-{id}' })
  await world.add('pair', { fields: { username: 'robot', password: 'p-{id}' } })
  await world.add('certificate', { fields: { client_certificate: 'CERT\n{id}\n', client_key: 'KEY\n' } })
  await world.add('half', { fields: { client_certificate: 'CERT' } })
  await world.add('lines', { secret: 'two\nlines' })
  env = await installCommands(world)
})
afterAll(() => world.close())

const HOUR_MS = 3_600_000

describe('gcp-credential', () => {
  const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'
  const JWT = 'urn:ietf:params:oauth:token-type:jwt'
  const ask = (more: Record<string, string> = {}, backend = 'demo') =>
    runCli(['gcp-credential', '--backend', backend], { env: { ...world.env, ...more } })

  test('answers as an executable source', async () => {
    const end = await ask({ GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES: '1' })
    expect([end.code, end.stderr]).toEqual([0, ''])
    const answer = JSON.parse(end.stdout)
    expect(answer).toEqual({
      version: 1,
      success: true,
      token_type: ID_TOKEN,
      id_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      expiration_time: expect.any(Number),
    })
    const claims = JSON.parse(atob(answer.id_token.split('.')[1]))
    expect(answer.expiration_time).toBe(claims.exp)
    expect(JSON.parse((await ask()).stdout)).toEqual(answer)
  })

  test('answers with the type of token that the configuration names', async () => {
    const end = await ask({ GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE: JWT })
    expect(JSON.parse(end.stdout)).toMatchObject({ success: true, token_type: JWT })
  })

  test('writes the answer to the output file of the configuration, readable by this user only', async () => {
    const file = join(world.home, 'gcp', 'answer.json')
    const end = await ask({ GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE: file })
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(end.stdout))
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test.each([
    ['no login', { MAYFLY_TOKEN: 'ckr_wrong' }, 'demo', 4, 'unauthorized'],
    ['no server', { MAYFLY_SERVER: 'http://127.0.0.1:1' }, 'demo', 3, 'unreachable_refused'],
    ['an unsupported type', { GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE: `${JWT}x` }, 'demo', 2, 'usage'],
    ['a credential that is not a JWT', {}, 'key', 1, 'wrong_backend'],
  ])('%s: answers in the error format and fails', async (_, more, backend, code, name) => {
    const file = join(world.home, 'gcp', 'never.json')
    const given: Record<string, string> = { GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE: file, ...more }
    const end = await ask(given, backend)
    expect(end.code).toBe(code)
    expect(JSON.parse(end.stdout)).toEqual({
      version: 1,
      success: false,
      code: name,
      message: expect.stringMatching(/\.$/),
    })
    expect(end.stderr.trim().split('\n')).toHaveLength(1)
    expectNoSecret(end.stdout + end.stderr, 'ckr_wrong', 'sk-cred_')
    await expect(stat(file)).rejects.toThrow('ENOENT')
  })
})

describe('kubectl-credential', () => {
  const GROUP = 'client.authentication.k8s.io/'
  const info = (version: string) =>
    JSON.stringify({ apiVersion: GROUP + version, kind: 'ExecCredential', spec: { interactive: false } })
  const ask = (backend: string, more: Record<string, string> = {}) =>
    runCli(['kubectl-credential', '--backend', backend], { env: { ...world.env, ...more } })

  test.each([
    [undefined, 'v1'],
    [info('v1'), 'v1'],
    [info('v1beta1'), 'v1beta1'],
  ])('asked with %s it answers with %s', async (given, version) => {
    const end = await ask('key', given === undefined ? {} : { KUBERNETES_EXEC_INFO: given })
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(JSON.parse(end.stdout)).toEqual({
      apiVersion: GROUP + version,
      kind: 'ExecCredential',
      status: {
        expirationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        token: expect.stringMatching(/^sk-cred_/),
      },
    })
  })

  test('answers with a certificate and its key', async () => {
    const { status } = JSON.parse((await ask('certificate')).stdout)
    const [id] = await world.alive('certificate')
    expect(status).toEqual({
      expirationTimestamp: expect.any(String),
      clientCertificateData: `CERT\n${id}\n`,
      clientKeyData: 'KEY\n',
    })
  })

  test.each([
    ['v1alpha1', 'key', info('v1alpha1'), 2, /v1$|v1\./],
    ['invalid JSON', 'key', '{"apiVersion":', 2, /KUBERNETES_EXEC_INFO/],
    ['another thing', 'key', '["v1"]', 2, /KUBERNETES_EXEC_INFO/],
    ['a certificate without its key', 'half', info('v1'), 1, /no client_key/],
    ['a pair', 'pair', info('v1'), 1, /no single secret; it gives: username, password/],
    ['two lines', 'lines', info('v1'), 1, /several lines/],
  ])('%s: nothing on standard output', async (_, backend, given, code, words) => {
    const end = await ask(backend, { KUBERNETES_EXEC_INFO: given })
    expect([end.code, end.stdout]).toEqual([code, ''])
    expect(end.stderr).toMatch(words)
    expectNoSecret(end.stderr, 'p-cred_', 'CERT', 'two')
  })

  test('prints a user that runs this command', async () => {
    const argv = ['kubectl-credential', '--backend', 'key', '--ttl', '5m', '--print', '--user', 'me']
    const printed = await runCli(argv, { env })
    const config = parse(printed.stdout)
    expect(config).toMatchObject({ apiVersion: 'v1', kind: 'Config', users: [{ name: 'me' }] })
    const { exec } = config.users[0].user
    expect(exec).toMatchObject({ apiVersion: `${GROUP}v1`, interactiveMode: 'Never' })
    const { status } = JSON.parse((await run([exec.command, ...exec.args], env)).stdout)
    expect(Date.parse(status.expirationTimestamp)).toBeLessThan(Date.now() + 301_000)
    expect(JSON.parse((await runCli([...argv, '--json'], { env })).stdout)).toEqual(config)
  })
})

describe('api-key', () => {
  const ask = (ahead = 0) => runCli(['api-key', '--backend', 'key'], { env: world.env, ahead })

  test('prints only the key, the same until five minutes before its end', async () => {
    const first = await ask()
    expect(first).toEqual({ code: 0, stdout: expect.stringMatching(/^sk-cred_\w+\n$/), stderr: '' })
    expect((await ask(HOUR_MS - 6 * 60_000)).stdout).toBe(first.stdout)
    expect((await ask(HOUR_MS - 4 * 60_000)).stdout).not.toBe(first.stdout)
  })

  test('prints another key after the first was revoked', async () => {
    const { stdout } = await ask()
    await world.agent.client.delete(`/api/v1/credentials/${stdout.trim().slice('sk-'.length)}`)
    expect((await ask()).stdout).not.toBe(stdout)
  })

  test('prints the same key while the server is away, until it is due', async () => {
    const own = await startToolsWorld()
    await own.add('key', { secret: 'sk-{id}' })
    const argv = ['api-key', '--backend', 'key']
    const known = await runCli(argv, { env: own.env })
    await own.app.close()
    expect(await runCli(argv, { env: own.env })).toEqual({ ...known, code: 0 })
    const later = await runCli(argv, { env: own.env, ahead: HOUR_MS })
    expect([later.code, later.stdout]).toEqual([3, ''])
    await rm(own.home, { recursive: true })
  })

  test('revokes a useless credential, even without a cache', async () => {
    const end = await runCli(['api-key', '--backend', 'lines'], {
      env: { ...world.env, XDG_CACHE_HOME: '/dev/null/cache' },
    })
    expect(end).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/several lines/) })
    expect(await world.alive('lines')).toEqual([])
  })

  test('prints settings whose helper works in sh', async () => {
    const argv = ['api-key', '--backend', 'key', '--scope', 'read:*', '--print']
    const settings = JSON.parse((await runCli(argv, { env })).stdout)
    expect(settings.env).toEqual({ CLAUDE_CODE_API_KEY_HELPER_TTL_MS: '300000' })
    const end = await run(['/bin/sh', '-c', settings.apiKeyHelper], env)
    expect(end).toEqual({ code: 0, stdout: expect.stringMatching(/^sk-cred_\w+\n$/), stderr: '' })
    const { body } = await world.agent.client.get(`/api/v1/credentials/${end.stdout.trim().slice(3)}`)
    expect(body.scopes).toEqual(['read:*'])
  })

  test.each([
    ['pair', /no single secret/],
    ['lines', /several lines/],
  ])('%s is for no key helper', async (backend, words) => {
    const end = await runCli(['api-key', '--backend', backend], world)
    expect([end.code, end.stdout]).toEqual([1, ''])
    expect(end.stderr).toMatch(words)
    expect(await world.alive(backend)).toEqual([])
  })
})

describe('npm-token', () => {
  const argv = ['npm-token', '--backend', 'key']

  test('prints only the token, or a whole header', async () => {
    const { stdout } = await runCli(argv, world)
    expect(stdout).toMatch(/^sk-cred_\w+\n$/)
    expect((await runCli([...argv, '--bearer'], world)).stdout).toBe(`Bearer ${stdout}`)
  })

  test('installs a program for pnpm, and replaces it', async () => {
    const path = join(world.home, 'local', 'npm-token')
    for (const registry of ['https://npm.example.com:8443/team', 'https://npm.example.com:8443/team/']) {
      const end = await runCli([...argv, '--write', path, '--registry', registry], { env })
      expect([end.code, end.stdout]).toEqual([0, `//npm.example.com:8443/team/:tokenHelper=${path}\n`])
    }
    expect((await stat(path)).mode & 0o777).toBe(0o755)
    const { stdout } = await run([path], env)
    expect(stdout).toMatch(/^Bearer sk-cred_\w+\n$/)
    expectNoSecret(await readFile(path, 'utf8'), 'sk-cred_', world.agent.token)
  })

  test.each([
    ['a path with a space', ['--write', '/tmp/a b'], /--write/],
    ['a path with shell syntax', ['--write', '/tmp/$(id)'], /--write/],
    ['an invalid registry', ['--write', '/tmp/x', '--registry', 'npm.example.com'], /--registry/],
    ['a registry with a password', ['--write', '/tmp/x', '--registry', 'https://a:b@c/'], /--registry/],
  ])('%s is refused', async (_, more, words) => {
    const end = await runCli([...argv, ...more], world)
    expect([end.code, end.stdout]).toEqual([2, ''])
    expect(end.stderr).toMatch(words)
  })

  test('does not overwrite another file', async () => {
    const path = join(world.home, 'theirs')
    await writeFile(path, '#!/bin/sh\necho theirs\n')
    const end = await runCli([...argv, '--write', path], world)
    expect([end.code, end.stdout]).toEqual([1, ''])
    expect(end.stderr).toContain('was not written by mayfly')
    expect(await readFile(path, 'utf8')).toContain('echo theirs')
  })
})
