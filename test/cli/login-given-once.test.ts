import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { newAuthority } from './certificates.ts'
import { configOf, type Home } from './login-support.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'

/** A server with a certificate of an authority that only --ca names, and one without TLS. */
let tls: TestApp
let plain: World
let caFile: string
let url: string
beforeAll(async () => {
  const { home } = await newHome()
  const authority = await newAuthority(home)
  caFile = authority.caFile
  const { certFile, keyFile } = await authority.issue({ name: 's', dns: ['localhost'], ips: ['127.0.0.1'] })
  tls = await startApp({
    argv: { tlsCertFile: certFile, tlsKeyFile: keyFile },
    yaml: 'policies: [{name: ci, pattern: "ci-*", scopes: [demo], auto_approve: true}]',
  })
  url = tls.url.replace('http:', 'https:')
  plain = await startWorld()
})
afterAll(async () => {
  await tls.close()
  await plain.close()
})

let who: Home
beforeEach(async () => {
  who = await newHome()
})
const cli = (argv: string[], stdin?: string) =>
  runCli(argv, { env: who.env, cwd: who.home, ...(stdin === undefined ? {} : { stdin }) })

test('--server, --profile and --ca of a login are stored with it', async () => {
  const agent = await tls.newAgent({ scopes: ['demo'] })
  const flags = ['--server', url, '--profile', 'work', '--ca', caFile]
  expect(await cli(['login', ...flags], agent.token)).toMatchObject({ code: 0 })
  expect((await configOf(who)).profiles.work).toMatchObject({ server: url, ca_file: caFile })
  for (const argv of [['status'], ['status', '--profile', 'work'], ['status', '--server', url]])
    expect(await cli(argv)).toMatchObject({ code: 0, stdout: expect.stringContaining(agent.name) })
})

test('a login that other commands do not use says how to name it', async () => {
  const agent = await tls.newAgent({ scopes: ['demo'] })
  expect((await cli(['login', '--server', plain.url], plain.agent.token)).stderr).not.toContain('--profile')
  const second = await cli(['login', '--server', url, '--ca', caFile, '--profile', 'work'], agent.token)
  expect(second.stderr).toMatch(/Other commands use it with: --profile work\n$/)
  expect((await cli(['status'])).stdout).toContain(plain.agent.name)
  expect((await cli(['status', '--profile', 'work'])).stdout).toContain(agent.name)
})

test('an enrollment under way keeps --ca, and its hints repeat what was given', async () => {
  const named = ['--server', url, '--ca', caFile, '--issuer', 'https://mayfly.test']
  const left = await cli(['enroll', '--name', 'waits', ...named, '--no-wait'])
  expect(left.stderr).toContain(`Once it is approved, run: mayfly enroll --server ${url} --ca ${caFile}\n`)
  // Also without the flags: the authority and the issuer are stored with the enrollment.
  const again = await cli(['enroll', '--server', url, '--no-wait'])
  expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('Once it is approved')])
  expect(await cli(['enroll', '--no-wait'])).toMatchObject({ code: 0 })
})

test('every hint repeats the flags of the command line, as far as the next command takes them', async () => {
  const agent = await tls.newAgent({ scopes: ['demo:read'] })
  const flags = ['--server', url, '--ca', caFile]
  const suffix = ` --server ${url} --ca ${caFile}`
  expect((await cli(['status', ...flags])).stderr).toContain(
    `Run \`mayfly enroll${suffix}\` or \`mayfly login${suffix}\`, or set MAYFLY_TOKEN.`,
  )
  await cli(['login', ...flags, '--profile', 'my work'.replace(' ', '-')], agent.token)
  const named = [...flags, '--profile', 'my-work']
  expect((await cli(['get', 'none', ...named])).stderr).toContain(
    `\`mayfly backends --server ${url} --profile my-work --ca ${caFile}\``,
  )
  const json = JSON.parse((await cli(['get', 'none', '--json', ...named])).stderr)
  expect(json.error.hint).toContain('--profile my-work')
  // Commands that take no such flags, or a help text, stay as they are.
  const { stderr } = await cli(['get', 'demo', '--ttl', ...named])
  expect(stderr).toContain('--help')
  expect((await cli(['status', '--server', 'http://127.0.0.1:1'])).stderr).not.toContain(
    '`mayfly server --server',
  )
})

test('what is no error repeats them, too', async () => {
  const { home, env } = await newHome()
  const empty = await startApp({ ownIssuer: true })
  const argv = ['backend', 'ls', '--server', empty.url, '--data-dir', empty.directory]
  const { stdout, stderr } = await runCli(argv, { env, cwd: home })
  await empty.close()
  expect(stdout + stderr).toContain(
    `\`mayfly backend add KIND --server ${empty.url} --data-dir ${empty.directory}\``,
  )
})

test('--data-dir is repeated for the commands of administrators alone', async () => {
  const dataDir = plain.app.directory
  const end = await cli(['agent', 'show', 'nobody', '--server', plain.url, '--data-dir', dataDir])
  expect(end.stderr).toContain(`\`mayfly agent ls --server ${plain.url} --data-dir ${dataDir}\``)
  const elsewhere = await cli(['agent', 'ls', '--profile', 'none', '--data-dir', dataDir])
  expect(elsewhere.stderr).toContain('`mayfly login --profile none`')
})

test('localhost and 127.0.0.1 with one port are one server', async () => {
  const byName = plain.url.replace('127.0.0.1', 'localhost')
  expect(await cli(['login', '--server', plain.url], plain.agent.token)).toMatchObject({ code: 0 })
  for (const server of [byName, plain.url])
    expect((await cli(['status', '--server', server])).stdout).toContain(plain.agent.name)
  const again = await cli(['login', '--server', byName], plain.agent.token)
  expect(again.code).toBe(0)
  const { profiles } = await configOf(who)
  expect(Object.entries(profiles).map(([name, one]) => [name, (one as { server: string }).server])).toEqual([
    ['default', plain.url],
  ])
  expect(
    JSON.parse(await readFile(join(who.home, 'config/mayfly/secrets/default.login.json'), 'utf8')).server,
  ).toBe(plain.url)
})

test('a login from the environment goes to the address that the environment names', async () => {
  const byName = plain.url.replace('127.0.0.1', 'localhost')
  const env = { ...who.env, MAYFLY_SERVER: plain.url, MAYFLY_TOKEN: plain.agent.token }
  const end = await runCli(['status', '--json', '--server', byName], { env })
  expect(JSON.parse(end.stdout)).toMatchObject({ server: plain.url, login_from: 'environment' })
})

test.each([
  ['another port', (url: string) => url.replace('127.0.0.1', 'localhost').replace(/\d+$/, '1')],
  ['another scheme', (url: string) => url.replace('http://127.0.0.1', 'https://localhost')],
  ['::1', (url: string) => url.replace('127.0.0.1', '[::1]')],
  [
    'a name that only begins so',
    (url: string) => url.replace('http://127.0.0.1', 'https://localhost.example.com'),
  ],
])('but %s is another server', async (_, other) => {
  await cli(['login', '--server', plain.url], plain.agent.token)
  const end = await cli(['status', '--server', other(plain.url)])
  expect([end.code, end.stderr]).toEqual([4, expect.stringContaining('You are not logged in to')])
})
