import { execFileSync } from 'node:child_process'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NewAgent } from '../support/app.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const as = (agent: NewAgent) => ({ ...world.env, MAYFLY_TOKEN: agent.token })
const mayfly = (...argv: string[]) => runCli(argv, { env: world.env })
const json = async (...argv: string[]) => {
  const { code, stdout, stderr } = await mayfly(...argv, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Every verb fails in the same way without a login, with a wrong one, and without a server. */
describe.each([
  ['status'],
  ['status'],
  ['backends'],
  ['signing-key'],
  ['get', 'demo'],
  ['revoke', '--all'],
  ['request', 'demo:x'],
])('%s %s', (...argv) => {
  const words = argv.filter((one) => one !== undefined)

  test('without a login: 4', async () => {
    const env = { ...world.bareEnv, MAYFLY_SERVER: world.url }
    expect(await runCli(words, { env })).toEqual({
      code: 4,
      stdout: '',
      stderr: `mayfly: You are not logged in to ${world.url}. Run \`mayfly enroll\` or \`mayfly login\`, or set MAYFLY_TOKEN.\n`,
    })
  })

  test('with a wrong one: 4, and it is not repeated', async () => {
    const token = `ckr_${'ab'.repeat(24)}`
    const { code, stdout, stderr } = await runCli(words, { env: { ...world.env, MAYFLY_TOKEN: token } })
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    expect(stderr).not.toContain(token)
  })

  test('without a server: 3', async () => {
    const env = { ...world.env, MAYFLY_SERVER: 'http://127.0.0.1:9' }
    const { code, stdout, stderr } = await runCli(words, { env })
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toMatch(
      /^mayfly: Cannot reach http:\/\/127\.0\.0\.1:9: nothing is listening there\. Start it .*\.\n$/,
    )
  })

  test('--help has an example, the exit codes and the options of every command', async () => {
    const { code, stdout } = await mayfly(...words, '--help')
    expect(code).toBe(0)
    expect(stdout).toMatch(/Examples:\n {2}\$ /)
    expect(stdout).toMatch(/Exit codes: 0 done, 1 failed, 2 wrong usage, 3 cannot reach the server/)
    expect(stdout).toMatch(/Options of every command:/)
  })
})

test('status names the agent, the server and the login', async () => {
  const agent = await world.app.newAgent({ scopes: ['demo:*'] })
  const end = await runCli(['status', '--json'], { env: as(agent) })
  const { body } = await agent.client.get('/v1/status')
  expect(JSON.parse(end.stdout)).toEqual({
    ...body,
    last_used: expect.any(String),
    id: agent.id,
    name: agent.name,
    server: world.url,
    profile: null,
    login: 'bearer',
    login_from: 'environment',
  })
  const { stdout } = await runCli(['status'], { env: as(agent) })
  expect(stdout).toContain(
    `Agent:     ${agent.name} (${agent.id})\nServer:    ${world.url}\nLogin:     token, from the environment\n`,
  )
  await runCli(['login', '--profile', 'work'], {
    env: { ...world.bareEnv, MAYFLY_SERVER: world.url },
    stdin: agent.token,
  })
  expect((await runCli(['status', '--profile', 'work'], { env: world.bareEnv })).stdout).toMatch(
    /^Profile: {3}work\nLogin: {5}token, from a file$/m,
  )
})

test('status', async () => {
  const { id } = await json('get', 'demo')
  await mayfly('request', 'demo:more')
  const status = await json('status')
  expect(status).toMatchObject({ id: world.agent.id, scopes: ['demo:*'] })
  const { stdout } = await mayfly('status')
  expect(stdout).toMatch(/^Agent: {5}agent-/)
  expect(stdout).toContain(id)
  expect(stdout).toMatch(/REQUEST +SCOPES +EXPIRES\n\S+ +demo:more +in 24 h/)
})

test('backends', async () => {
  expect(await json('backends')).toMatchObject([{ id: 'demo', type: 'jwt', max_ttl: '1h' }])
  expect((await mayfly('backends')).stdout).toMatch(
    /^BACKEND +KIND +DEFAULT TTL +MAX TTL.*\ndemo +jwt +10m +1h +by expiry\n$/,
  )
})

describe('credentials ls and revoke', () => {
  test('an id', async () => {
    const { id } = await json('get', 'demo')
    expect((await json('credentials', 'ls')).map((one: { id: string }) => one.id)).toContain(id)
    expect((await mayfly('credentials', 'ls')).stdout).toContain(id)
    expect(await json('revoke', id)).toMatchObject([{ id, revoked: true, upstream: 'expires' }])
    expect(await json('revoke', id)).toMatchObject([{ id, revoked: true }])
    expect((await json('credentials', 'ls')).map((one: { id: string }) => one.id)).not.toContain(id)
  })

  test('all of a backend, all', async () => {
    await world.app.newBackend({ name: 'other' })
    const agent = await world.app.newAgent({ scopes: ['demo:*', 'other:*'] })
    const own = (...argv: string[]) => runCli(argv, { env: as(agent) })
    for (const backend of ['demo', 'other', 'other']) await own('get', backend)
    expect(JSON.parse((await own('revoke', '--backend', 'OTHER', '--json')).stdout)).toHaveLength(2)
    expect(JSON.parse((await own('credentials', 'ls', '--json')).stdout)).toMatchObject([{ backend: 'demo' }])
    const { code, stdout, stderr } = await own('revoke', '--all')
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(/^Revoked cred_\w+ here; upstream accepts it until it expires\.\n$/)
    expect((await own('revoke', '--all')).stderr).toBe('There was nothing to revoke.\n')
  })

  test('shows how far it has come with many', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    for (let count = 0; count < 3; count += 1)
      await agent.client.post('/api/v1/credentials', { backend: 'demo' })
    const { code, stderr } = await runCli(['revoke', '--all'], { env: as(agent), tty: true })
    expect([code, stderr]).toEqual([0, expect.stringContaining('Revoking: 3 of 3')])
  })

  test('an unknown id does not stop the revocation of the others', async () => {
    const { id } = await json('get', 'demo')
    const { code, stderr } = await mayfly('revoke', 'cred_nosuch', id)
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /cred_nosuch was not revoked[\s\S]*Revoked cred_[\s\S]*There is no such credential/,
    )
    expect((await json('credentials', 'ls')).map((one: { id: string }) => one.id)).not.toContain(id)
  })

  test('also deletes what tools have cached', async () => {
    const fill = 'protocol=https\nhost=git.example.com\n\n'
    const argv = ['git-credential', '--host', 'git.example.com', '--backend', 'demo', 'get']
    const ask = () => runCli(argv, { env: world.env, stdin: fill })
    const first = (await ask()).stdout
    expect(first).toMatch(/^password=ey/m)
    expect((await ask()).stdout).toBe(first)
    await mayfly('revoke', '--all')
    const second = (await ask()).stdout
    expect(second).toMatch(/^password=ey/m)
    expect(second).not.toBe(first)
  })

  test.each([[[]], [['--all', '--backend', 'demo']], [['cred_1', '--all']]])(
    '%j is wrong usage',
    async (argv) => {
      expect(await mayfly('revoke', ...argv)).toMatchObject({
        code: 2,
        stderr:
          'mayfly: Give exactly one of: ids, --all, --backend, --agent. Run it with --help for usage.\n',
      })
    },
  )
})

describe('request', () => {
  test('says what the administrator has to do', async () => {
    const agent = await world.app.newAgent({ scopes: [] })
    const argv = ['request', 'demo:read', '--reason', 'to see', '--expires-in', '2h']
    const { code, stdout, stderr } = await runCli(argv, { env: as(agent) })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(
      /^Requested demo:read\. An administrator can approve it with: mayfly approve enr_\w+\n$/,
    )
    const waiting = await world.app.admin('GET', '/v1/admin/pending')
    expect(waiting.body).toContainEqual(
      expect.objectContaining({ name: agent.name, reason: 'to see', expires_in: '2h', type: 'amendment' }),
    )
  })

  test.each(['approve', 'reject'] as const)('--wait ends when it is decided: %s', async (decision) => {
    const agent = await world.app.newAgent({ scopes: [] })
    const { said, ended } = spawnCli(['request', 'demo:read', '--wait'], { env: as(agent) })
    const id = /mayfly approve (enr_\w+)/.exec(await said(/mayfly approve enr_\w+\n/))?.[1]
    await world.app.admin('POST', `/v1/admin/pending/${id}/${decision}`, {})
    const { code, stdout, stderr } = await ended
    expect({ code, stdout }).toEqual({ code: decision === 'approve' ? 0 : 5, stdout: '' })
    expect(stderr).toMatch(decision === 'approve' ? /Approved: demo:read\n$/ : /was rejected\. Ask/)
  })

  test('--wait and Ctrl-C: 130', async () => {
    const agent = await world.app.newAgent({ scopes: [] })
    const { child, said, ended } = spawnCli(['request', 'demo:read', '--wait'], { env: as(agent) })
    await said('mayfly approve')
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).toBe(130)
    expect(stderr.split('\n')).toHaveLength(2)
  })

  test('a malformed scope is wrong usage', async () => {
    expect(await mayfly('request', 'no spaces')).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('signing-key', () => {
  const reads = async () =>
    ((await world.app.admin('GET', '/v1/admin/audit?action=signing_key.read&limit=1000')).body as unknown[])
      .length

  test('prints the public key, and nothing is recorded', async () => {
    const before = await reads()
    const { stdout } = await mayfly('signing-key')
    expect(stdout).toMatch(
      /^-----BEGIN PGP PUBLIC KEY BLOCK-----\n[\s\S]*-----END PGP PUBLIC KEY BLOCK-----\n$/,
    )
    expect(await json('signing-key')).not.toHaveProperty('private_key')
    expect(await reads()).toBe(before)
  })

  test('the private one to a file that only we can read', async () => {
    const before = await reads()
    const { code, stdout, stderr } = await mayfly('signing-key', '--export-to', 'key.asc')
    const file = join(world.home, 'key.asc')
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: '',
      stderr: `The private key is in ${file}, which only you can read.\n`,
    })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readFile(file, 'utf8')).toMatch(/^-----BEGIN PGP PRIVATE KEY BLOCK-----/)
    expect(await reads()).toBe(before + 1)
  })

  test('--private prints it; with --json too', async () => {
    expect((await mayfly('signing-key', '--private')).stdout).toMatch(
      /^-----BEGIN PGP PRIVATE KEY BLOCK-----/,
    )
    expect((await json('signing-key', '--private')).private_key).toMatch(/PRIVATE KEY/)
  })

  test('--git-config is read by a shell', async () => {
    execFileSync('git', ['init', '-q', world.home])
    const { stdout } = await mayfly('signing-key', '--git-config')
    execFileSync('/bin/sh', ['-e'], { cwd: world.home, input: stdout, env: world.env })
    const email = execFileSync('git', ['config', 'user.email'], {
      cwd: world.home,
      env: world.env,
    }).toString()
    expect(email.trim()).toBe(world.agent.signing_email)
  })

  test('a place where nothing can be written', async () => {
    await writeFile(join(world.home, 'plain'), '')
    const { code, stderr } = await mayfly('signing-key', '--export-to', 'plain/key.asc')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^mayfly: .*plain\/key\.asc cannot be written: .*\. The file is unchanged\.\n$/)
    expect(await mayfly('signing-key', '--private', '--git-config')).toMatchObject({ code: 2 })
  })
})
