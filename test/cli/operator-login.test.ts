import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MINUTE_MS } from '../../src/domain/limits.ts'
import { commandByCode, deny } from '../support/command.ts'
import { newPerson, type Person } from '../support/person.ts'
import { configOf, newLogin, newStranger } from './login-support.ts'
import { commandSessionsOf, loggedInAsBoth, newestEntry, operatorSecretOf, runAs } from './person-support.ts'
import { expectNoSecret, runCli, startWorld, type World } from './support.ts'

let world: World
let alice: Person
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
beforeEach(async () => {
  // Ten logins begin in a minute at one address.
  world.app.advance(MINUTE_MS)
  alice = await newPerson(world.app)
})

const newest = (action: string) => newestEntry(world, action)
const sessionsOf = (person: Person) => commandSessionsOf(world, person)
const as = (token: string) => world.app.as(token).get('/v1/admin/me')
const both = () => loggedInAsBoth(world, alice)

describe('login', () => {
  test.each(['browser', 'device'] as const)('--%s keeps the login beside that of the agent', async (way) => {
    const who = await newLogin(world)
    const { code, stdout, stderr } = await runAs(alice, ['login', `--${way}`], { env: who.env })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(
      new RegExp(
        `\nLogged in to ${world.url} as ${alice.email}, an operator\\. The login ends in 12 h, and is stored in ${who.home}/config/mayfly/secrets/default\\.operator\\.json\\.\n$`,
      ),
    )
    const [session] = await sessionsOf(alice)
    expect(session).toMatchObject({ method: way, host: expect.any(String) })
    expect((await configOf(who)).profiles.default).toMatchObject({
      server: world.url,
      login: 'bearer',
      agent: { id: world.agent.id },
      operator: {
        id: alice.id,
        email: alice.email,
        method: way,
        session: session?.id,
        secret_in: 'file',
        issuer: world.app.core.settings.issuer,
      },
    })
    const { token } = await operatorSecretOf(who)
    expect(await as(token)).toMatchObject({ status: 200, body: { email: alice.email } })
    expectNoSecret(stdout + stderr + JSON.stringify(await configOf(who)), token)
  })

  test('verbs of administration are the person’s, verbs of agents the agent’s', async () => {
    const who = await both()
    const made = await runCli(['agent', 'create', 'by-alice', '--scope', 'demo', '--json'], { env: who.env })
    expect(made.code).toBe(0)
    expect(await newest('agent.created')).toMatchObject({ actor: `operator:${alice.email}` })
    const got = await runCli(['get', 'demo'], { env: who.env })
    expect(got.code).toBe(0)
    expect(await newest('credential.issued')).toMatchObject({ agent_id: world.agent.id })
    // Those of both, without an agent.
    const alone = await newStranger(world)
    await runAs(alice, ['login', '--device'], { env: alone.env })
    expect(await runCli(['get', 'demo'], { env: alone.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('not logged in'),
    })
    const { id } = (
      await runCli(['credentials', 'ls', '--all-agents', '--json'], { env: alone.env }).then(({ stdout }) =>
        JSON.parse(stdout),
      )
    )[0]
    expect(await runCli(['revoke', id], { env: alone.env })).toMatchObject({ code: 0 })
    expect(await newest('credential.revoked')).toMatchObject({ actor: `operator:${alice.email}` })
  })

  test('a new login of the agent leaves that of the person, and the other way round', async () => {
    const who = await both()
    const { token } = await operatorSecretOf(who)
    await runCli(['login'], { env: who.env, stdin: world.agent.token })
    expect(await operatorSecretOf(who)).toMatchObject({ token })
    expect((await runCli(['agent', 'ls'], { env: who.env })).code).toBe(0)
    // A second login of the person ends the first, which nobody could use any more.
    await runAs(alice, ['login', '--device'], { env: who.env })
    expect(await as(token)).toMatchObject({ status: 401 })
    expect(await sessionsOf(alice)).toHaveLength(1)
    expect((await runCli(['status', '--json'], { env: who.env })).stdout).toContain(world.agent.id)
  })

  test.each(['browser', 'device'])('--%s: what the person denies is not kept', async (way) => {
    const who = await newStranger(world)
    const end = await runAs(alice, ['login', `--${way}`], { env: who.env, decide: deny })
    expect(end).toMatchObject({ code: 5, stderr: expect.stringContaining('The login was not allowed.') })
    expect(await readdir(who.home)).toEqual([])
  })

  test('on a terminal without a login, it asks which', async () => {
    const choosing = async (stdin: string) => {
      const who = await newStranger(world)
      return { who, ...(await runAs(alice, ['login'], { env: who.env, tty: true, stdin })) }
    }
    const device = await choosing('3\n')
    expect(device.code).toBe(0)
    expect(device.stderr).toContain(
      `Log in to ${world.url} as
  1  an agent, with a token
  2  yourself, with a browser on this machine
  3  yourself, with a browser on another machine
1, 2 or 3: `,
    )
    expect((await configOf(device.who)).profiles.default.operator.method).toBe('device')
    const browser = await choosing('2\n')
    expect((await configOf(browser.who)).profiles.default.operator.method).toBe('browser')
    const agent = await choosing(`1\n${world.agent.token}\r`)
    expect(agent.stderr).toContain('Token: \nLogged in')
    expect(agent.stderr).not.toContain(world.agent.token)
    for (const wrong of ['4\n', '\n', 'constructor\n'])
      expect(await choosing(wrong)).toMatchObject({ code: 2 })
    // A login of a person beside which the agent's is missing does not count as one.
    const again = await runAs(alice, ['login'], { env: device.who.env, tty: true, stdin: '3\n' })
    expect(again.code).toBe(0)
    const held = await newLogin(world)
    const replaced = await runCli(['login'], { env: held.env, tty: true, stdin: `${world.agent.token}\r` })
    expect(replaced.stderr).toMatch(/^Token: \nLogged in/)
  })

  test.each<[string, string[]]>([
    ['both', ['--browser', '--device']],
    ['a token', ['--browser', '--token-file', '-']],
    ['a client id', ['--device', '--client-id', 'agent_1']],
    ['a move', ['--device', '--move']],
  ])('excludes %s', async (_, argv) => {
    const who = await newStranger(world)
    expect(await runCli(['login', ...argv], { env: who.env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('exclude each other'),
    })
  })

  test('the token of a person is no token of an agent', async () => {
    const { token } = await commandByCode(world.app, alice)
    const who = await newStranger(world)
    const { code, stderr } = await runCli(['login', '--token-file', '-'], { env: who.env, stdin: token })
    expect(code).toBe(2)
    expect(stderr).toBe(
      'mayfly: This is the token of an operator (mop_…), which nobody but the login that got it can use. To administer as yourself, run `mayfly login --browser` or `mayfly login --device`. The token of an agent begins with ckr_.\n',
    )
    const env = { ...who.env, MAYFLY_TOKEN: token }
    for (const argv of [
      ['get', 'demo'],
      ['status'],
      ['run', '--backend', 'demo', '--', 'true'],
      ['backends'],
    ]) {
      const refused = await runCli(argv, { env })
      expect(refused.code, argv.join(' ')).toBe(4)
      expect(refused.stderr).toContain('MAYFLY_TOKEN holds the token of an operator (mop_…)')
      expectNoSecret(refused.stderr, token)
    }
    expect(await runCli(['agent', 'ls'], { env })).toMatchObject({ code: 0 })
    expect(await runCli(['config', 'show'], { env })).toMatchObject({ code: 0 })
  })

  test('does not replace an enrolled key at another server', async () => {
    const other = await startWorld()
    const who = await newLogin(other)
    const end = await runCli(['login', '--browser', '--profile', 'default'], {
      env: { ...who.env, MAYFLY_SERVER: world.url },
    })
    expect(end).toMatchObject({
      code: 1,
      stderr: `mayfly: The profile default has the login of an agent at ${other.url}. Choose another with --profile.\n`,
    })
    // Without a name it gets a profile of its own.
    const { stderr } = await runAs(alice, ['login', '--browser'], {
      env: { ...who.env, MAYFLY_SERVER: world.url },
    })
    expect(stderr).toContain('Logged in')
    const { profiles } = await configOf(who)
    expect(Object.keys(profiles)).toHaveLength(2)
    await other.close()
  })

  test('where operator_login is off, it says so', async () => {
    const off = await startWorld({ argv: { operatorLogin: 'off' } })
    const who = await newStranger(off)
    for (const way of ['--browser', '--device'])
      expect(await runCli(['login', way], { env: who.env })).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('operator_login is off'),
      })
    await off.close()
  })
})

describe('status and profiles', () => {
  test('show both logins', async () => {
    const who = await both()
    const [session] = await sessionsOf(alice)
    const { stdout } = await runCli(['status'], { env: who.env })
    expect(stdout).toContain(world.agent.name)
    expect(stdout).toMatch(
      new RegExp(
        `^Operator: +${alice.email}, ends in 12 h\nSession: +${session?.id}, by the browser, from a file$`,
        'm',
      ),
    )
    const { operator } = JSON.parse((await runCli(['status', '--json'], { env: who.env })).stdout)
    expect(operator).toMatchObject({ email: alice.email, session: session?.id, state: 'active' })
    const inEnvironment = { ...who.env, MAYFLY_TOKEN: world.agent.token }
    expect((await runCli(['status'], { env: inEnvironment })).stdout).not.toContain('Operator')
    const ls = await runCli(['profile', 'ls'], { env: who.env })
    expect(ls.stdout).toMatch(
      new RegExp(
        `^\\* +default +${world.url} +${world.agent.name} +token, in a file +${alice.email}, ends in 12 h$`,
        'm',
      ),
    )
    const show = await runCli(['profile', 'show'], { env: who.env })
    expect(show.stdout).toMatch(new RegExp(`^Operator: +${alice.email}, ends in 12 h$`, 'm'))
    const all = await runCli(['status', '--all'], { env: who.env })
    expect(all.stdout).toMatch(new RegExp(`^default .* ${alice.email}, ends in 12 h$`, 'm'))
    const { token } = await operatorSecretOf(who)
    expectNoSecret(stdout + ls.stdout + show.stdout + all.stdout, token)
  })

  test('of a person alone', async () => {
    const who = await newStranger(world)
    await runAs(alice, ['login', '--device'], { env: who.env })
    const { stdout } = await runCli(['status'], { env: who.env })
    expect(stdout).toMatch(
      /^Server: .*\nProfile: +default\nOperator: .*\nSession: .*, by a code, from a file\n$/,
    )
    expect(JSON.parse((await runCli(['status', '--json'], { env: who.env })).stdout)).toEqual({
      server: world.url,
      profile: 'default',
      operator: expect.objectContaining({ state: 'active' }),
    })
    expect((await runCli(['profile', 'ls'], { env: who.env })).stdout).toMatch(
      new RegExp(`^\\* +default +${world.url} +${alice.email}, ends in 12 h$`, 'm'),
    )
    expect(await runCli(['doctor'], { env: who.env })).toMatchObject({
      stdout: expect.stringContaining(`The login works: operator ${alice.email}`),
    })
  })
})

test('login --move takes both logins along', async () => {
  const who = await both()
  const there = world.url.replace('127.0.0.1', 'localhost')
  const moved = await runCli(['login', '--move', '--server', there], { env: who.env })
  expect(moved).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      `The login of ${world.agent.name} and ${alice.email} is now for ${there}.`,
    ),
  })
  const env = { ...who.env, MAYFLY_SERVER: there }
  expect((await configOf(who)).profiles.default).toMatchObject({ server: there, login: 'bearer' })
  expect(await runCli(['agent', 'ls'], { env })).toMatchObject({ code: 0 })
  expect((await runCli(['status'], { env })).stdout).toContain(`${alice.email}, ends in`)
})

test('a token in a file that others have changed is not sent to the server that the profile names now', async () => {
  const who = await both()
  const file = join(who.home, 'config/mayfly/config.json')
  const other = await startWorld()
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace(`"server": "${world.url}"`, `"server": "${other.url}"`))
  const end = await runCli(['agent', 'ls'], { env: { ...who.env, MAYFLY_SERVER: '' } })
  expect(end).toMatchObject({ code: 4, stderr: expect.stringContaining('has ended') })
  await other.close()
})

test('--data-dir is the local administrator, and console always is', async () => {
  const who = await both()
  const made = ['agent', 'create', 'by-local', '--scope', 'demo', '--data-dir', world.app.directory]
  expect(await runCli(made, { env: { ...who.env, MAYFLY_SERVER: '' } })).toMatchObject({ code: 0 })
  expect(await newest('agent.created')).toMatchObject({ actor: 'local' })
  const cwd = join(who.home, 'place')
  await mkdir(cwd)
  await symlink(world.app.directory, join(cwd, 'mayfly-data'))
  const link = await runCli(['console', '--operator', alice.email], { env: who.env, cwd })
  expect(link).toMatchObject({ code: 0, stdout: expect.stringContaining('#link=') })
})
