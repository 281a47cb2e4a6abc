import { execFile } from 'node:child_process'
import { createServer, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { newRepository } from './git-support.ts'
import { configOf } from './login-support.ts'
import { expectNoSecret, newHome, runCli, startWorld, type World } from './support.ts'
import { installCommands } from './tools-support.ts'

const run = promisify(execFile)

/** Two servers, with an agent each, and a listener that keeps whatever it is sent. */
let a: World
let b: World
let heard: string[]
let ear: { url: string; close(): void }
beforeAll(async () => {
  a = await startWorld()
  b = await startWorld()
  heard = []
  const server = createServer((request, response) => {
    request.on('data', (chunk) => heard.push(String(chunk)))
    heard.push(JSON.stringify(request.rawHeaders))
    request.on('end', () => response.writeHead(401).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  ear = { url: `http://127.0.0.1:${port}`, close: () => server.close() }
})
afterAll(async () => {
  ear.close()
  await a.close()
  await b.close()
})

let home: string
let bare: Record<string, string>
beforeEach(async () => {
  heard.length = 0
  ;({ home, env: bare } = await newHome())
})

/** Logs the agent of this world in, as this profile. */
const logIn = async (world: World, ...argv: string[]) =>
  expect(
    await runCli(['login', '--server', world.url, ...argv], { env: bare, stdin: world.agent.token }),
  ).toMatchObject({ code: 0 })
const whoIs = async (env: Record<string, string>, ...argv: string[]) => {
  const { code, stderr } = await runCli(['status', ...argv], { env })
  if (code !== 0) return stderr
  return JSON.parse((await runCli(['status', '--json', ...argv], { env })).stdout).name
}
/** The variables of b: its login alone, or with its address. */
const tokenOfB = () => ({ MAYFLY_TOKEN: b.agent.token })
const environmentOfB = () => ({ ...tokenOfB(), MAYFLY_SERVER: b.url })

test('a token from the environment goes to the server from the environment, and to no other', async () => {
  const env = { ...bare, ...environmentOfB() }
  expect(await whoIs(env)).toBe(b.agent.name)
  expect(await whoIs(env, '--server', b.url)).toBe(b.agent.name)
  expect(await whoIs(env, '--server', ear.url)).toBe(
    `mayfly: You are not logged in to ${ear.url}. MAYFLY_TOKEN is used only for the server of the environment: set MAYFLY_SERVER=${ear.url}, or run \`mayfly login --server ${ear.url}\`.\n`,
  )
  expect(heard).toEqual([])
})

test.each([
  [
    'a client secret',
    () => ({ MAYFLY_CLIENT_ID: b.agent.oidc.client_id, MAYFLY_CLIENT_SECRET: b.agent.oidc.client_secret }),
  ],
  ['a token', tokenOfB],
])('without MAYFLY_SERVER, %s is for the server of a command without flags', async (_, login) => {
  await logIn(b)
  await logIn(a)
  const env = { ...bare, ...login() }
  expect(await whoIs(env)).toBe(b.agent.name)
  expect(await whoIs(env, '--server', a.url)).toBe(a.agent.name)
  expect(await whoIs(env, '--server', ear.url)).toMatch(/^mayfly: You are not logged in to/)
  expect(heard).toEqual([])
})

test('without MAYFLY_SERVER and a login, a token is for the default server', async () => {
  expect(await whoIs({ ...bare, ...tokenOfB() }, '--server', ear.url)).toMatch(/set MAYFLY_SERVER=/)
  expect(heard).toEqual([])
})

test('--profile takes precedence over a login from the environment', async () => {
  await logIn(a, '--profile', 'work')
  const env = { ...bare, ...environmentOfB() }
  expect(await whoIs(env, '--profile', 'work', '--server', a.url)).toBe(a.agent.name)
  const { MAYFLY_SERVER: _, ...withoutServer } = env
  expect(await whoIs(withoutServer, '--profile', 'work')).toBe(a.agent.name)
  const same = { ...bare, MAYFLY_SERVER: a.url, MAYFLY_TOKEN: b.agent.token }
  expect(await whoIs(same, '--profile', 'work')).toBe(a.agent.name)
  expect(await whoIs(same, '--profile', 'other')).toMatch(
    /MAYFLY_TOKEN is not used with --profile: leave it out/,
  )
})

test('a command that `git setup` pinned keeps its server and its login', async () => {
  const setup = { ...bare, ...(await installCommands({ ...a, home })), ...bare }
  await logIn(a)
  const env = { ...setup, PATH: `${join(home, 'bin')}:${bare['PATH']}`, GIT_CONFIG_NOSYSTEM: '1' }
  const repository = await newRepository({ ...a, home, env })
  const argv = ['git', 'setup', '--host', 'git.example.com', '--backend', 'demo']
  expect(await runCli(argv, { env, cwd: repository })).toMatchObject({ code: 0 })
  // The environment of another server: nothing of it may be used.
  const other = { ...env, MAYFLY_SERVER: ear.url, MAYFLY_TOKEN: b.agent.token, GIT_TERMINAL_PROMPT: '0' }
  const git = (...args: string[]) => run('git', args, { cwd: repository, env: other })
  await git('commit', '-q', '--allow-empty', '-m', 'signed by the agent of the set-up')
  expect((await git('log', '-1', '--format=%ae')).stdout.trim()).toBe(a.agent.signing_email)
  expect((await git('cat-file', 'commit', 'HEAD')).stdout).toContain('BEGIN PGP SIGNATURE')
  const asked = run('git', ['credential', 'fill'], { cwd: repository, env: other })
  asked.child.stdin?.end('protocol=https\nhost=git.example.com\n\n')
  expect((await asked).stdout).toMatch(/\npassword=ey/)
  expect(await a.agent.client.get('/v1/active').then(({ body }) => body.length)).toBe(1)
  expect(heard).toEqual([])
})

test.each(['docker', 'terraform'])(
  'a host of `%s setup` keeps its server and its login, whatever MAYFLY_SERVER says',
  async (tool) => {
    await logIn(a)
    expect(
      await runCli(['helper', tool, '--write', '--host', 'r.example', '--backend', 'demo'], { env: bare }),
    ).toMatchObject({
      code: 0,
    })
    const env = { ...bare, MAYFLY_SERVER: ear.url, MAYFLY_TOKEN: b.agent.token, MAYFLY_PROFILE: 'other' }
    const end =
      tool === 'docker'
        ? await runCli(['docker-credential', 'get'], { env, stdin: 'r.example' })
        : await runCli(['terraform-credentials', 'get', 'r.example'], { env })
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(heard).toEqual([])
  },
)

test('a set-up under a login from the environment writes no secret, and needs that environment again', async () => {
  const env = { ...bare, ...environmentOfB() }
  expect(
    await runCli(['helper', 'docker', '--write', '--host', 'r.example', '--backend', 'demo'], { env }),
  ).toMatchObject({
    code: 0,
  })
  const get = (more: Record<string, string>) =>
    runCli(['docker-credential', 'get'], { env: { ...bare, ...more }, stdin: 'r.example' })
  const end = await get(environmentOfB())
  expect(end.code).toBe(0)
  expectNoSecret(end.stdout + end.stderr, b.agent.token)
  expect((await get({ MAYFLY_SERVER: ear.url, MAYFLY_TOKEN: a.agent.token })).code).toBe(4)
  expect(heard).toEqual([])
})

test('a warning after a login names a variable only if it takes precedence', async () => {
  const env = { ...bare, ...environmentOfB() }
  const login = (world: World) => runCli(['login', '--server', world.url], { env, stdin: world.agent.token })
  expect((await login(a)).stderr).not.toContain('precedence')
  expect((await login(b)).stderr).toContain('MAYFLY_TOKEN is set and takes precedence')
})

test('servers whose addresses look alike get profiles of their own', async () => {
  await logIn(a)
  // One listener with two servers below different paths, at an address that begins with no letter or digit.
  const proxy = createServer((request, response) => {
    const path = String(request.url).replace(/^\/team[/-]a/, '')
    const { method, headers } = request
    request.pipe(
      httpRequest(`${a.url}${path}`, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers)
        answer.pipe(response)
      }),
    )
  })
  await new Promise<void>((resolve) => proxy.listen(0, '::1', resolve))
  const { port } = proxy.address() as { port: number }
  const servers = [`http://[::1]:${port}/team/a`, `http://[::1]:${port}/team-a`]
  const login = (server: string) => runCli(['login', '--server', server], { env: bare, stdin: a.agent.token })
  expect(await Promise.all(servers.map(login))).toMatchObject([{ code: 0 }, { code: 0 }])
  const { profiles } = await configOf({ home, env: bare })
  const kept = Object.values(profiles as Record<string, { server: string }>).map(({ server }) => server)
  expect(kept.sort()).toEqual([a.url, ...servers].sort())
  proxy.closeAllConnections()
  proxy.close()
})

test('two first logins at one moment, at two servers, are both kept', async () => {
  await Promise.all([logIn(a), logIn(b)])
  const { profiles } = await configOf({ home, env: bare })
  const kept = Object.values(profiles as Record<string, { server: string }>).map(({ server }) => server)
  expect(kept.sort()).toEqual([a.url, b.url].sort())
  for (const world of [a, b]) expect(await whoIs(bare, '--server', world.url)).toBe(world.agent.name)
})
