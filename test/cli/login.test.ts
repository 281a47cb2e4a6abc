import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configOf, type Home, newLogin, newStranger, secretFile } from './login-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const stranger = () => newStranger(world)
const loggedIn = () => newLogin(world)
const withoutServer = ({ env }: Home) => ({ ...env, MAYFLY_SERVER: '' })

describe('login', () => {
  test('tries a token from standard input, and keeps it for this user alone', async () => {
    const who = await stranger()
    const { code, stdout, stderr } = await runCli(['login'], {
      env: who.env,
      stdin: `${world.agent.token}\n`,
    })
    const file = secretFile(who)
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: `Logged in to ${world.url} as ${world.agent.name}. The login is stored in ${file}.\n`,
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700)
    expect(await configOf(who)).toEqual({
      current: 'default',
      profiles: {
        default: {
          server: world.url,
          login: 'bearer',
          secret_in: 'file',
          agent: { id: world.agent.id, name: world.agent.name },
          server_keys: [expect.stringMatching(/^[\w-]{43}$/)],
        },
      },
    })
    const status = await runCli(['status', '--json'], { env: withoutServer(who) })
    expect(JSON.parse(status.stdout)).toMatchObject({
      profile: 'default',
      login_from: 'file',
      server: world.url,
    })
  })

  test('a token from a file; --json', async () => {
    const who = await stranger()
    await writeFile(join(who.home, 'token'), `${world.agent.token}\n`)
    const { stdout } = await runCli(['login', '--token-file', 'token', '--profile', 'work', '--json'], {
      env: who.env,
    })
    expect(JSON.parse(stdout)).toEqual({
      server: world.url,
      profile: 'work',
      agent: { id: world.agent.id, name: world.agent.name },
      login: 'bearer',
      kept_in: 'file',
      place: secretFile(who, 'work'),
    })
  })

  test('warns that a login in the environment takes precedence', async () => {
    const who = await stranger()
    const env = { ...who.env, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` }
    expect(await runCli(['login'], { env, stdin: world.agent.token })).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(
        /\nMAYFLY_TOKEN is set and takes precedence over this login\. Unset it\.\n$/,
      ),
    })
    expect(await runCli(['status'], { env })).toMatchObject({ code: 4 })
  })

  test('typed at a terminal, it is not shown', async () => {
    const who = await stranger()
    const { code, stdout, stderr } = await runCli(['login'], {
      env: who.env,
      tty: true,
      stdin: `1\noops\x15${world.agent.token}x\x7f\r`,
    })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(/\n1, 2 or 3: Token: \nLogged in/)
    expect(stderr).not.toContain(world.agent.token)
  })

  test('Ctrl-C at the prompt: 130, and nothing is changed', async () => {
    // With a login of an agent it asks for the token at once.
    const who = await loggedIn()
    const before = await readFile(secretFile(who), 'utf8')
    const { code, stderr } = await runCli(['login'], { env: who.env, tty: true, stdin: 'ckr_\x03' })
    expect({ code, stderr }).toEqual({ code: 130, stderr: 'Token: \n' })
    expect(await readFile(secretFile(who), 'utf8')).toBe(before)
  })

  test('client id and secret; the access token is shared by later runs', async () => {
    const who = await stranger()
    const { client_id, client_secret } = world.agent.oidc
    const argv = ['login', '--client-id', client_id, '--client-secret-file', '-']
    expect(await runCli(argv, { env: who.env, stdin: client_secret })).toMatchObject({ code: 0 })
    const logins = async () =>
      ((await world.app.admin('GET', '/v1/admin/audit?action=token.issued&limit=1000')).body as unknown[])
        .length
    const before = await logins()
    await runCli(['status'], { env: who.env })
    await runCli(['status'], { env: who.env })
    expect(await logins()).toBe(before)
    const [name = ''] = await readdir(join(who.home, 'cache/mayfly/tokens'))
    const file = join(who.home, 'cache/mayfly/tokens', name)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    // Half a minute before its end there is a new one; a cache that is damaged is as none.
    await runCli(['status'], { env: who.env, ahead: 3_600_000 - 20_000 })
    await writeFile(file, '{broken')
    await runCli(['status'], { env: who.env })
    expect(await logins()).toBe(before + 2)
  })

  test.each<[string, string[], string, RegExp]>([
    ['nothing', [], '', /Standard input is empty/],
    ['something else', [], 'hunter2', /This is not a Mayfly token\. A token is ckr_/],
    ['a client secret that is none', ['--client-id', 'agent_x'], 'hunter2', /not a Mayfly client secret/],
    ['a secret without its id', ['--client-secret-file', '-'], 'x', /needs --client-id/],
    ['both', ['--client-id', 'x', '--token-file', '-'], 'x', /exclude each other/],
  ])('%s is wrong usage and not repeated', async (_, argv, stdin, message) => {
    const who = await stranger()
    const { code, stderr } = await runCli(['login', ...argv], { env: who.env, stdin })
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('hunter2')
    expect(await readdir(who.home)).toEqual([])
  })

  test('does not keep a wrong token, and the earlier login stays', async () => {
    const who = await loggedIn()
    const before = await readFile(secretFile(who), 'utf8')
    const wrong = `ckr_${'0'.repeat(48)}`
    expect(await runCli(['login'], { env: who.env, stdin: wrong })).toMatchObject({ code: 4 })
    expect(await readFile(secretFile(who), 'utf8')).toBe(before)
  })

  test('a second server gets a profile of its own', async () => {
    const who = await loggedIn()
    const other = await startWorld()
    const env = { ...who.env, MAYFLY_SERVER: other.url }
    await runCli(['login'], { env, stdin: other.agent.token })
    const { current, profiles } = await configOf(who)
    expect(current).toBe('default')
    const [first, second, ...more] = Object.keys(profiles)
    expect([first, more]).toEqual(['default', []])
    expect(second).toMatch(/^127\.0\.0\.1-\d+-[0-9a-f]{8}$/)
    const name = async (more: Record<string, string>) =>
      JSON.parse((await runCli(['status', '--json'], { env: { ...who.env, ...more } })).stdout).name
    expect(await name({})).toBe(world.agent.name)
    expect(await name({ MAYFLY_SERVER: other.url })).toBe(other.agent.name)
    await other.close()
  })
})

describe('whose login goes where', () => {
  test('a profile is never used for another server', async () => {
    const who = await loggedIn()
    const argv = ['status', '--profile', 'default', '--server', 'http://127.0.0.1:9']
    expect(await runCli(argv, { env: who.env })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/You are not logged in to/),
    })
  })

  test('a secret is only for the server that it was kept for', async () => {
    const who = await loggedIn()
    const config = await configOf(who)
    config.profiles.default.server = 'http://127.0.0.1:9'
    await writeFile(join(who.home, 'config/mayfly/config.json'), JSON.stringify(config), { mode: 0o600 })
    expect(await runCli(['status'], { env: withoutServer(who) })).toMatchObject({ code: 4 })
  })

  test.each([
    ['MAYFLY_TOKEN', 'MAYFLY_CLIENT_ID'],
    ['MAYFLY_CLIENT_ID', ''],
  ])('the environment comes before the profile: %s', async (first) => {
    const who = await loggedIn()
    const other = await world.app.newAgent({ scopes: [] })
    const login =
      first === 'MAYFLY_TOKEN'
        ? { MAYFLY_TOKEN: other.token }
        : { MAYFLY_CLIENT_ID: other.oidc.client_id, MAYFLY_CLIENT_SECRET: other.oidc.client_secret }
    const { stdout } = await runCli(['status', '--json'], { env: { ...who.env, ...login } })
    expect(JSON.parse(stdout)).toMatchObject({
      name: other.name,
      login_from: 'environment',
      profile: null,
    })
  })

  test('secrets of the environment may be in files', async () => {
    const { home, env } = await stranger()
    await writeFile(join(home, 't'), `${world.agent.token}\n`)
    expect(await runCli(['status'], { env: { ...env, MAYFLY_TOKEN_FILE: 't' } })).toMatchObject({ code: 0 })
    expect(await runCli(['status'], { env: { ...env, MAYFLY_TOKEN_FILE: 'absent' } })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(
        /^mayfly: Cannot read the file that MAYFLY_TOKEN_FILE names: \S+absent: no such file or directory\. Put the secret there, or unset/,
      ),
    })
    const both = { MAYFLY_TOKEN_FILE: 't', MAYFLY_TOKEN: world.agent.token }
    expect(await runCli(['status'], { env: { ...env, ...both } })).toMatchObject({ code: 2 })
    expect(await runCli(['status'], { env: { ...env, MAYFLY_CLIENT_ID: 'x' } })).toMatchObject({ code: 2 })
  })
})

describe('logout', () => {
  test('forgets the login, the access token and what was cached', async () => {
    const who = await stranger()
    const { client_id, client_secret } = world.agent.oidc
    await runCli(['login', '--client-id', client_id], { env: who.env, stdin: client_secret })
    expect(await readdir(join(who.home, 'cache/mayfly/tokens'))).toHaveLength(1)
    const { code, stdout, stderr } = await runCli(['logout'], { env: who.env })
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: `Removed the login at ${world.url}.\n`,
    })
    expect(await configOf(who)).toEqual({ profiles: {} })
    expect(await readdir(join(who.home, 'config/mayfly/secrets'))).toEqual([])
    expect(await readdir(join(who.home, 'cache/mayfly/tokens'))).toEqual([])
    expect(await runCli(['status'], { env: who.env })).toMatchObject({ code: 4 })
    expect(await runCli(['logout'], { env: who.env })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/Choose another profile/),
    })
  })

  test('works without the server', async () => {
    const who = await loggedIn()
    const config = await configOf(who)
    config.profiles.default.server = 'http://127.0.0.1:9'
    await writeFile(join(who.home, 'config/mayfly/config.json'), JSON.stringify(config), { mode: 0o600 })
    expect(await runCli(['logout'], { env: withoutServer(who) })).toMatchObject({ code: 0 })
  })

  test('--delete-agent asks first, and ends the agent', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const who = await stranger()
    await runCli(['login'], { env: who.env, stdin: agent.token })
    const issued = await runCli(['get', 'demo', '-o', 'field=id'], { env: who.env })
    const argv = ['logout', '--delete-agent']
    expect(await runCli(argv, { env: who.env })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no terminal to ask.*Give --yes\./),
    })
    expect(await runCli(argv, { env: who.env, tty: true, stdin: 'n\n' })).toMatchObject({ code: 1 })
    expect((await agent.client.get('/v1/status')).status).toBe(200)
    const yes = await runCli([...argv, '--json'], { env: who.env, tty: true, stdin: 'y\n' })
    expect(yes.code).toBe(0)
    expect(JSON.parse(yes.stdout)).toEqual({ profile: 'default', server: world.url, deleted_agent: true })
    expect((await agent.client.get('/v1/status')).status).toBe(401)
    const credential = await world.app.admin('GET', `/api/v1/credentials/${issued.stdout.trim()}`)
    expect(credential.body).toMatchObject({ status: 'revoked' })
  })

  test('--delete-agent ends an agent that got more scopes since its access token was kept', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const { client_id, client_secret } = agent.oidc
    const who = await stranger()
    await runCli(['login', '--client-id', client_id, '--client-secret-file', '-'], {
      env: who.env,
      stdin: client_secret,
    })
    const { id } = (await agent.client.post('/v1/request', { scopes: ['other'] })).body
    await world.app.admin('POST', `/v1/admin/pending/${id}/approve`)
    expect(await runCli(['logout', '--delete-agent', '--yes'], { env: who.env })).toMatchObject({ code: 0 })
    expect((await agent.client.get('/v1/status')).status).toBe(401)
  })
})

test('Ctrl-C at a real prompt of a child: 130, without a stack', async () => {
  const who = await stranger()
  const { child, ended } = spawnCli(['login'], { env: who.env, stdin: 'open' })
  // It reads standard input by now, or will: either way the signal ends it.
  await new Promise<void>((resolve) => child.stdin?.write('ckr_', () => resolve()))
  child.kill('SIGTERM')
  const { code, signal, stdout } = await ended
  expect([code, signal]).toSatisfy(([c, s]) => c === 143 || s === 'SIGTERM')
  expect(stdout).toBe('')
})
