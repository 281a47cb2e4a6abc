import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/domain/limits.ts'
import { deny } from '../support/command.ts'
import { logInAgain, newPerson, type Person } from '../support/person.ts'
import { configOf, type Home, newStranger } from './login-support.ts'
import { commandSessionsOf, loggedInAsBoth, newestEntry, operatorSecretOf, runAs } from './person-support.ts'
import { runCli, startWorld, type World } from './support.ts'

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

describe('an act that must be confirmed', () => {
  const newVictim = async () => (await world.app.newAgent({ scopes: ['demo'] })).name
  const isThere = async (name: string) =>
    (await world.app.local.get(`/v1/admin/agents/${name}`)).status === 200

  test('within 15 minutes of the login it is done; later a terminal logs in again, once', async () => {
    const who = await both()
    const first = await newVictim()
    expect(await runCli(['agent', 'rm', first, '--yes'], { env: who.env })).toMatchObject({ code: 0 })
    const { token } = await operatorSecretOf(who)
    world.app.advance(16 * MINUTE_MS)
    const later = await newVictim()
    const fresh = await logInAgain(world.app, alice)
    const end = await runAs(fresh, ['agent', 'rm', later, '--yes'], { env: who.env, tty: true })
    expect(end.code).toBe(0)
    expect(end.stderr).toMatch(
      /^This must be confirmed by a fresh login, and counts as confirmed for 15 minutes after it\.\n/,
    )
    expect(await isThere(later)).toBe(false)
    const kept = await operatorSecretOf(who)
    expect(kept.token).not.toBe(token)
    // The login of before has ended.
    expect(await as(token)).toMatchObject({ status: 401 })
    expect(await sessionsOf(alice)).toHaveLength(1)
    const again = await newVictim()
    expect(await runCli(['agent', 'rm', again, '--yes'], { env: who.env })).toMatchObject({ code: 0 })
  })

  test('without a terminal it ends with 4, and names the next step', async () => {
    const who = await both()
    world.app.advance(16 * MINUTE_MS)
    const victim = await newVictim()
    const end = await runCli(['agent', 'rm', victim, '--yes'], { env: who.env })
    expect(end).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(
        'It counts as confirmed for 15 minutes after a login: run `mayfly login --browser` or `mayfly login --device`, then the command again.',
      ),
    })
    expect(await isThere(victim)).toBe(true)
  })

  test('the login of somebody else does nothing, and is not kept', async () => {
    const who = await both()
    const { token } = await operatorSecretOf(who)
    world.app.advance(16 * MINUTE_MS)
    const victim = await newVictim()
    const bob = await newPerson(world.app)
    const end = await runAs(bob, ['agent', 'rm', victim, '--yes'], { env: who.env, tty: true })
    expect(end).toMatchObject({
      code: 5,
      stderr: expect.stringContaining(
        `You logged in as ${bob.email}, and asked for this as ${alice.email}; nothing was done.`,
      ),
    })
    expect(await isThere(victim)).toBe(true)
    expect(await sessionsOf(bob)).toEqual([])
    expect((await operatorSecretOf(who)).token).toBe(token)
  })

  test('what is denied there is not done', async () => {
    const who = await both()
    world.app.advance(16 * MINUTE_MS)
    const victim = await newVictim()
    const fresh = await logInAgain(world.app, alice)
    const wish = { env: who.env, tty: true, decide: deny }
    expect(await runAs(fresh, ['agent', 'rm', victim, '--yes'], wish)).toMatchObject({ code: 5 })
    expect(await isThere(victim)).toBe(true)
  })

  test('what gives an admin scope is refused, and says where it is done', async () => {
    const who = await both()
    const invite = ['operator', 'invite', 'eve@example.com', '--scope', 'admin:*']
    expect(await runCli(invite, { env: who.env, tty: true })).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/do it in the console, or on the server's machine over admin\.sock\.\n$/),
    })
  })
})

describe('a login that has ended', () => {
  test.each<[string, (who: Home) => Promise<{ ahead?: number }>]>([
    ['expired', async () => ({ ahead: 13 * HOUR_MS })],
    [
      'ended by somebody',
      async () => {
        await world.app.local.delete(`/v1/admin/operators/${alice.id}/sessions`)
        return {}
      },
    ],
    [
      'of an operator who is gone',
      async () => {
        await world.app.local.delete(`/v1/admin/operators/${alice.id}`)
        return {}
      },
    ],
  ])('%s: an error with the next step, and no other identity', async (_, end) => {
    const who = await both()
    const wish = { env: who.env, ...(await end(who)) }
    const before = await newest('agent.created')
    // The rule for local callers, and the agent, might do it.
    expect(await runCli(['agent', 'create', 'late', '--scope', 'demo'], wish)).toEqual({
      code: 4,
      stdout: '',
      stderr: `mayfly: Your login as ${alice.email} at ${world.url} has ended. Run \`mayfly login --browser\`; to go on without it, \`mayfly logout --operator\`.\n`,
    })
    expect(await newest('agent.created')).toEqual(before)
    const status = await runCli(['status'], wish)
    expect(status.code).toBe(0)
    expect(status.stdout).toMatch(
      new RegExp(`^Operator: +${alice.email}, has ended: run \`mayfly login --browser\`$`, 'm'),
    )
    expect(await runCli(['get', 'demo'], wish)).toMatchObject({ code: 0 })
    expect(await runCli(['logout', '--operator'], wish)).toMatchObject({ code: 0 })
    expect(await runCli(['agent', 'ls'], wish)).toMatchObject({ code: 0 })
  })

  test('without an agent, status ends with 4', async () => {
    const who = await newStranger(world)
    await runAs(alice, ['login', '--device'], { env: who.env })
    expect(await runCli(['status'], { env: who.env })).toMatchObject({ code: 0 })
    await world.app.local.delete(`/v1/admin/operators/${alice.id}/sessions`)
    expect(await runCli(['status'], { env: who.env })).toMatchObject({ code: 4 })
    expect(await runCli(['status', '--all'], { env: who.env })).toMatchObject({ code: 4 })
    expect(await runCli(['doctor'], { env: who.env })).toMatchObject({
      stdout: expect.stringContaining('mayfly login --device'),
    })
  })
})

describe('logout', () => {
  test('--operator ends only the login of the person, at the server, too', async () => {
    const who = await both()
    const { token } = await operatorSecretOf(who)
    expect(await runCli(['logout', '--operator'], { env: who.env })).toEqual({
      code: 0,
      stdout: '',
      stderr: `Removed the login of ${alice.email} at ${world.url}.\n`,
    })
    expect(await as(token)).toMatchObject({ status: 401 })
    expect(await newest('session.ended')).toMatchObject({ actor: `operator:${alice.email}` })
    expect(await readdir(join(who.home, 'config/mayfly/secrets'))).toEqual(['default.login.json'])
    expect(await runCli(['status'], { env: who.env })).toMatchObject({ code: 0 })
    expect(await runCli(['logout', '--operator'], { env: who.env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("There is no operator's login"),
    })
  })

  test('ends both, and profile rm does, too', async () => {
    for (const argv of [
      ['logout', '--json'],
      ['profile', 'rm', 'default', '--yes'],
    ]) {
      const who = await both()
      const { token } = await operatorSecretOf(who)
      const { code, stdout } = await runCli(argv, { env: who.env })
      expect(code).toBe(0)
      if (argv[0] === 'logout')
        expect(JSON.parse(stdout)).toEqual({
          profile: 'default',
          server: world.url,
          deleted_agent: false,
          operator_ended: true,
        })
      expect(await as(token)).toMatchObject({ status: 401 })
      expect(await readdir(join(who.home, 'config/mayfly/secrets'))).toEqual([])
      expect((await configOf(who)).profiles).toEqual({})
      world.app.advance(MINUTE_MS)
    }
  })

  test('of a login that has ended says nothing of the server', async () => {
    const who = await both()
    await world.app.local.delete(`/v1/admin/operators/${alice.id}/sessions`)
    expect(await runCli(['logout'], { env: who.env })).toEqual({
      code: 0,
      stdout: '',
      stderr: `Removed the login of the agent and the login of ${alice.email} at ${world.url}.\n`,
    })
  })

  test('with the server away, the login is gone from here, and it says what remains', async () => {
    const gone = await startWorld()
    const carol = await newPerson(gone.app)
    const who = await newStranger(gone)
    await runAs(carol, ['login', '--browser'], { env: who.env })
    const { session } = (await configOf(who)).profiles.default.operator
    await gone.close()
    const { code, stdout, stderr } = await runCli(['logout', '--json'], { env: who.env })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ operator_ended: false })
    expect(stderr).toContain(
      `The login of ${carol.email} was removed here, and is valid at the server until it expires in 12 h: end the session ${session} in the console.`,
    )
    expect(await readdir(join(who.home, 'config/mayfly/secrets'))).toEqual([])
  })

  test('--operator and --delete-agent exclude each other', async () => {
    expect(await runCli(['logout', '--operator', '--delete-agent'], { env: world.env })).toMatchObject({
      code: 2,
    })
  })
})
