import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addCredentials } from '../support/many-credentials.ts'
import { expectNoSecret, runCli, startWorld, type World } from './support.ts'

let world: World
/** Of an administrator without a login. */
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const asAgent = (token: string) => ({ ...env, MAYFLY_TOKEN: token })
const issue = async (agent = world.agent) =>
  (await agent.client.post('/api/v1/credentials', { backend: 'demo' })).body
const idsIn = (json: string) => JSON.parse(json).map((row: { id: string }) => row.id)

describe('credentials ls of all agents', () => {
  const read = async (...argv: string[]) =>
    idsIn((await mayfly('credentials', 'ls', '--json', ...argv)).stdout)

  test('lists those of all agents with every filter, and never a secret', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const [first, second] = [await issue(agent), await issue(agent)]
    const own = ['--agent', agent.name]
    expect(await read(...own)).toEqual([second.id, first.id])
    expect(await read('-n', '1')).toEqual([second.id])
    expect(await read(...own, '--backend', 'demo', '--status', 'active')).toHaveLength(2)
    expect(await read(...own, '--status', 'revoked')).toEqual([])
    const text = (await mayfly('credentials', 'ls')).stdout
    expect(text).toMatch(/^CREDENTIAL +AGENT +BACKEND +SCOPES +STATUS +EXPIRES\n/)
    expect(text).toMatch(new RegExp(`^${first.id}  ${agent.name} +demo +\\* +active +in \\d+ min$`, 'm'))
    expectNoSecret(text, first.token, second.token)
  })
})

describe('credentials ls', () => {
  test('a name that no agent or backend ever had is an error, and no empty list', async () => {
    expect(await mayfly('credentials', 'ls', '--agent', 'nosuch')).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(
        'No agent has, or ever had, this name or id. List the agents with `mayfly agent ls',
      ),
    })
    expect(await mayfly('credentials', 'ls', '--all-agents', '--backend', 'nosuch')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no such backend. List them with `mayfly backends'),
    })
    expect(
      await runCli(['revoke', '--backend', 'nosuch'], { env: asAgent(world.agent.token) }),
    ).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no such backend.'),
    })
  })

  test('the name of an agent without credentials, and of one that was deleted, is none', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const none = { code: 0, stdout: '', stderr: 'No active credentials.\n' }
    expect(await mayfly('credentials', 'ls', '--agent', agent.name)).toEqual(none)
    expect(await mayfly('credentials', 'ls', '--agent', agent.id)).toEqual(none)
    const { id } = await issue(agent)
    await mayfly('agent', 'rm', agent.name, '--yes')
    expect(await mayfly('credentials', 'ls', '--agent', agent.name)).toEqual(none)
    const history = await mayfly('credentials', 'ls', '--agent', agent.name, '--status', 'all', '--json')
    expect(idsIn(history.stdout)).toEqual([id])
  })

  test('lists only your own with a login, and only those that are active', async () => {
    await issue()
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const own = (...argv: string[]) => runCli(['credentials', 'ls', ...argv], { env: asAgent(agent.token) })
    expect(await own()).toEqual({ code: 0, stdout: '', stderr: 'No active credentials.\n' })
    const [first, second] = [await issue(agent), await issue(agent)]
    expect((await own()).stdout).toMatch(
      new RegExp(`^CREDENTIAL +BACKEND +CREATED +EXPIRES\n${first.id}  demo +\\d+ s ago +in \\d+ min\n`),
    )
    await mayfly('revoke', first.id)
    expect(idsIn((await own('--json')).stdout)).toEqual([second.id])
    expect(idsIn((await own('--json', '--backend', 'DEMO')).stdout)).toEqual([second.id])
    expect(await own('--json', '--backend', 'other')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('backend_not_found'),
    })
    // Those of others are for administrators.
    for (const argv of [['--all-agents'], ['--agent', world.agent.name], ['--status', 'revoked']])
      expect(await own(...argv)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('admin:tokens:read'),
      })
  })

  test('shows every status only if it is asked to', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const { id } = await issue(agent)
    await mayfly('revoke', id)
    const read = async (...argv: string[]) =>
      idsIn((await mayfly(...argv, '--agent', agent.name, '--json')).stdout)
    expect(await read('credentials', 'ls')).toEqual([])
    expect(await read('credentials', 'ls', '--status', 'all')).toEqual([id])
  })
})

describe('revoke of ids', () => {
  const stateOf = async (id: string) =>
    (await world.app.admin('GET', `/api/v1/credentials/${id}`)).body.status

  test('ends those of any agent, of the local administrator', async () => {
    const other = await world.app.newAgent({ scopes: ['demo:*'] })
    const [first, second] = [await issue(), await issue(other)]
    const ended = await mayfly('revoke', first.id, second.id, '--json')
    expect(JSON.parse(ended.stdout)).toMatchObject([
      { id: first.id, revoked: true, upstream: 'expires' },
      { id: second.id, revoked: true, upstream: 'expires' },
    ])
    const { body } = await world.app.admin('GET', '/v1/admin/tokens?status=revoked')
    expect(body.map((row: { id: string }) => row.id)).toEqual(expect.arrayContaining([second.id, first.id]))
  })

  test('an unknown id: revokes the others, and points to the listing', async () => {
    const [first, second] = [await issue(), await issue()]
    const unknown = `cred_${'0'.repeat(26)}`
    const ended = await mayfly('revoke', first.id, unknown, second.id)
    expect([ended.code, ended.stdout]).toEqual([1, ''])
    expect(ended.stderr).toMatch(new RegExp(`^mayfly: ${unknown} was not revoked\\.\nRevoked ${first.id} `))
    expect(ended.stderr).toMatch(
      /\nmayfly: There is no such credential\. List them with `mayfly credentials ls`\.\n$/,
    )
    expect([await stateOf(first.id), await stateOf(second.id)]).toEqual(['revoked', 'revoked'])
  })

  test('with a login ends your own, and no other', async () => {
    const agent = await world.app.newAgent({ scopes: ['demo:*'] })
    const [own, other] = [await issue(agent), await issue()]
    const revoke = (id: string) => runCli(['revoke', id], { env: asAgent(agent.token) })
    expect(await revoke(own.id)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Revoked ${own.id} `),
    })
    expect(await revoke(other.id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no such credential'),
    })
    expect(await stateOf(other.id)).toBe('active')
  })

  test('with the login of an administrator ends those of others, and with --data-dir without it', async () => {
    const admin = await world.app.newAgent({ scopes: ['admin:tokens:write'] })
    const [first, second] = [await issue(), await issue()]
    expect(await runCli(['revoke', first.id], { env: asAgent(admin.token) })).toMatchObject({ code: 0 })
    const plain = await world.app.newAgent({ scopes: [] })
    const local = ['revoke', second.id, '--data-dir', world.app.directory]
    expect(await runCli(local, { env: asAgent(plain.token) })).toMatchObject({ code: 0 })
    for (const [{ id }, actor] of [
      [first, admin.id],
      [second, 'local'],
    ]) {
      const query = `/v1/admin/audit?action=credential.revoked&credential=${id}`
      expect((await world.app.admin('GET', query)).body).toMatchObject([{ actor }])
    }
  })

  test('without a login, from another machine: 4', async () => {
    const env = { ...world.bareEnv, MAYFLY_SERVER: 'https://nowhere.invalid' }
    expect(await runCli(['revoke', 'cred_1'], { env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('You are not logged in to'),
    })
  })

  test('of the local administrator also deletes what tools have cached', async () => {
    const login = asAgent(world.agent.token)
    const key = () => runCli(['helper', 'api-key', '--backend', 'demo'], { env: login })
    const first = (await key()).stdout
    expect((await key()).stdout).toBe(first)
    const [{ id }] = (await world.app.admin('GET', '/v1/admin/tokens?status=active&limit=1')).body
    expect((await mayfly('revoke', id)).code).toBe(0)
    expect((await key()).stdout).not.toBe(first)
  })
})

test('credentials revoke says which verb it is', async () => {
  expect(await mayfly('credentials', 'revoke', 'cred_1')).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'mayfly: "revoke" is not a command (did you mean "mayfly revoke"?). Run `mayfly credentials --help` for usage.\n',
  })
})

test.each([
  [['credentials', 'ls', '--status', 'gone'], 2],
  [['credentials', 'ls', '--limit', '0'], 2],
  [['revoke'], 2],
  [['revoke', '..'], 2],
  [['credentials'], 2],
])('wrong usage: %j', async (argv, code) => {
  expect((await mayfly(...argv)).code).toBe(code)
})

test('without the scope, names it', async () => {
  for (const [argv, scope] of [
    [['credentials', 'ls', '--all-agents'], 'admin:tokens:read'],
    [['credentials', 'ls', '--status', 'revoked'], 'admin:tokens:read'],
  ] as const) {
    const ended = await runCli(argv, { env: world.env })
    expect([ended.code, ended.stderr]).toEqual([5, expect.stringContaining(scope)])
  }
})

test('a terminal shows a page of 5,000, and says how many there are', async () => {
  await world.app.newBackend({ name: 'crowded' })
  const agent = await world.app.newAgent({ scopes: ['crowded:*'] })
  await addCredentials(world.app.core, 'crowded', agent, 5_000)
  const rowsIn = (text: string) => text.trimEnd().split('\n').length - 1
  const argv = ['credentials', 'ls']
  const own = await runCli(argv, { env: asAgent(agent.token), tty: true })
  expect([own.code, rowsIn(own.stdout)]).toEqual([0, 50])
  expect(own.stderr).toMatch(/50 of 5,000 active credentials\. See more with --limit NUMBER or --all\.\n$/)
  const status = await runCli(['status'], { env: asAgent(agent.token), tty: true })
  expect(status.stdout.match(/^cred_/gm)).toHaveLength(20)
  expect(status.stdout).toContain('`mayfly credentials ls` lists them.')
  const everybodys = await runCli(argv, { env, tty: true })
  expect(rowsIn(everybodys.stdout)).toBe(50)
  expect(everybodys.stderr).toMatch(/50 of 5,0\d\d active credentials\./)
  const all = await runCli(argv, { env: asAgent(agent.token) })
  expect([rowsIn(all.stdout), all.stderr]).toEqual([5_000, ''])
})
