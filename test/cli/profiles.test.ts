import { readFile, stat } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { configOf, type Home, newLogin, secretFile } from './login-support.ts'
import { expectNoSecret, runCli, startWorld, type World } from './support.ts'

let world: World
let other: World
beforeAll(async () => {
  ;[world, other] = await Promise.all([startWorld(), startWorld()])
})
afterAll(async () => {
  await Promise.all([world.close(), other.close()])
})

/** Logged in at both servers, as `default` and as `staging`; nothing in the environment names a server. */
async function loggedInAtBoth(): Promise<Home> {
  const who = await newLogin(world)
  const { MAYFLY_SERVER: _, ...env } = who.env
  const login = ['login', '--server', other.url, '--profile', 'staging']
  expect(await runCli(login, { env, stdin: other.agent.token })).toMatchObject({ code: 0 })
  return { home: who.home, env }
}

describe('profile', () => {
  test('ls lists every login, marks the one that commands use, and shows no secret', async () => {
    const { env } = await loggedInAtBoth()
    const { code, stdout, stderr } = await runCli(['profile', 'ls'], { env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['', 'PROFILE', 'SERVER', 'AGENT', 'LOGIN', 'OPERATOR'],
      ['*', 'default', world.url, world.agent.name, 'token, in a file'],
      ['', 'staging', other.url, other.agent.name, 'token, in a file'],
      [''],
    ])
    const json = (await runCli(['profile', 'ls', '--json'], { env })).stdout
    expect(JSON.parse(json)).toMatchObject([
      { name: 'default', current: true, server: world.url, login: 'bearer', secret_in: 'file' },
      { name: 'staging', current: false, server: other.url, agent: { id: other.agent.id } },
    ])
    expectNoSecret(stdout + json, world.agent.token, other.agent.token)
  })

  test('use chooses the one that commands use, and says what takes precedence', async () => {
    const who = await loggedInAtBoth()
    const mayfly = (...argv: string[]) => runCli(argv, { env: who.env })
    expect(await mayfly('profile', 'use', 'staging')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'Commands use the profile staging now.\n',
    })
    expect((await mayfly('status')).stdout).toContain(other.agent.name)
    expect((await mayfly('profile', 'show')).stdout).toMatch(/^Profile: +staging \(current\)\nServer: /)
    expect((await mayfly('profile', 'show', 'default', '--json')).stdout).toContain('"current": false')
    const env = { ...who.env, MAYFLY_TOKEN: world.agent.token }
    expect((await runCli(['profile', 'use', 'default'], { env })).stderr).toContain(
      'MAYFLY_TOKEN is set and takes precedence over it. Unset it.',
    )
    const named = { ...who.env, MAYFLY_PROFILE: 'staging' }
    expect((await runCli(['profile', 'use', 'default'], { env: named })).stderr).toContain(
      'MAYFLY_PROFILE or MAYFLY_SERVER is set',
    )
  })

  test('rm asks, removes the login and its secret, and leaves the others', async () => {
    const who = await loggedInAtBoth()
    const asked = await runCli(['profile', 'rm', 'staging'], { env: who.env })
    expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    // A server in the environment is not the one of this profile.
    const env = { ...who.env, MAYFLY_SERVER: world.url }
    expect(await runCli(['profile', 'rm', 'staging', '--yes'], { env })).toMatchObject({ code: 0 })
    await expect(stat(secretFile(who, 'staging'))).rejects.toThrow('ENOENT')
    expect(Object.keys((await configOf(who)).profiles)).toEqual(['default'])
    expect(await readFile(secretFile(who), 'utf8')).toContain(world.agent.token)
    expect((await runCli(['status'], { env: who.env })).stdout).toContain(world.agent.name)
  })

  test.each(['show', 'use', 'rm'])('%s of a name that there is not', async (verb) => {
    const { env } = await loggedInAtBoth()
    for (const name of ['nosuch', '__proto__', 'constructor'])
      expect(await runCli(['profile', verb, name], { env })).toEqual({
        code: 1,
        stdout: '',
        stderr: `mayfly: There is no profile "${name}". List them with \`mayfly profile ls\`.\n`,
      })
  })
})

describe('status --all', () => {
  test('a line for each login, and the exit code of one whose server is away', async () => {
    const { env } = await loggedInAtBoth()
    const both = await runCli(['status', '--all'], { env: { ...env, MAYFLY_SERVER: other.url } })
    expect(both).toMatchObject({ code: 0, stderr: '' })
    expect(both.stdout).toMatch(
      new RegExp(`^default +${world.url} +${world.agent.name} +never +\\d+ +0$`, 'm'),
    )
    expect(both.stdout).toMatch(new RegExp(`^staging +${other.url} +${other.agent.name} +never`, 'm'))
    const gone = await startWorld()
    const login = ['login', '--server', gone.url, '--profile', 'gone']
    await runCli(login, { env, stdin: gone.agent.token })
    await gone.close()
    const { code, stdout } = await runCli(['status', '--all', '--json'], { env })
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject([
      { profile: 'default', status: { name: world.agent.name } },
      { profile: 'staging', server: other.url, status: { name: other.agent.name } },
      { profile: 'gone', error: { code: 'unreachable_refused' } },
    ])
  })

  test('without profiles it says how to make one', async () => {
    expect(await runCli(['status', '--all'], { env: world.bareEnv })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('Run `mayfly enroll` or `mayfly login`.'),
    })
    expect(await runCli(['status', '--all', '--profile', 'x'], { env: world.bareEnv })).toMatchObject({
      code: 2,
    })
  })
})
