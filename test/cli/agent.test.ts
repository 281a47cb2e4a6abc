import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Interrupted } from '../../src/cli/frame/surroundings.ts'
import { startApp } from '../support/app.ts'
import { entry, exchange, template, workload } from '../support/keyless.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'
import { runTyping } from './typing.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const exists = async (name: string) =>
  (await world.app.admin('GET', `/v1/admin/agents/${name}`)).status === 200

describe('agent create', () => {
  test('its token works, and is shown this once', async () => {
    const made = await mayfly(
      'agent',
      'create',
      'a1',
      '--scope',
      'demo:r',
      '--scope',
      'demo:w',
      '--expires-in',
      '2h',
      '--audience',
      'sts.example',
    )
    expect([made.code, made.stderr]).toEqual([0, 'The token and the client secret cannot be shown again.\n'])
    const token = /^token: +(ckr_\S+)$/m.exec(made.stdout)?.[1]
    const status = await runCli(['status', '--json'], { env: { ...env, MAYFLY_TOKEN: token } })
    expect(JSON.parse(status.stdout)).toMatchObject({ name: 'a1', scopes: ['demo:r', 'demo:w'] })
    const shown = await mayfly('agent', 'show', 'a1')
    expect(shown.stdout).toMatch(/^scopes: +demo:r, demo:w$/m)
    expect(shown.stdout).toMatch(/^audiences: +sts\.example$/m)
    expect(shown.stdout).not.toContain(token)
  })

  test('each form alone on standard output', async () => {
    const form = async (name: string, output: string) =>
      (await mayfly('agent', 'create', name, '-o', output)).stdout
    expect(await form('f1', 'field=token')).toMatch(/^ckr_[0-9a-f]{48}\n$/)
    expect(await form('f2', 'env')).toMatch(
      /^export MAYFLY_TOKEN='ckr_.*'\nexport MAYFLY_CLIENT_ID='.*'\nexport MAYFLY_CLIENT_SECRET='cks_.*'\n$/,
    )
    expect(await form('f3', 'dotenv')).toMatch(/^MAYFLY_TOKEN=/)
    expect(JSON.parse(await form('f4', 'json'))).toMatchObject({ name: 'f4', oidc: {} })
    const wrong = await mayfly('agent', 'create', 'f5', '-o', 'xml')
    expect([wrong.code, await exists('f5')]).toEqual([2, false])
  })

  test('--write: a new file for this user alone, and no secret on the terminal', async () => {
    const made = await mayfly('agent', 'create', 'w1', '--write', 'w1.json')
    const file = join(world.home, 'w1.json')
    const { token } = JSON.parse(await readFile(file, 'utf8'))
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(made.stdout + made.stderr).not.toContain(token)
    const again = await mayfly('agent', 'create', 'w2', '--write', 'w1.json')
    expect([again.code, await exists('w2')]).toEqual([2, false])
    expect(JSON.parse(await readFile(file, 'utf8')).token).toBe(token)
  })

  test('is deleted again when its secrets cannot be written', async () => {
    const unwritable = await mayfly('agent', 'create', 'u1', '--write', '/dev/null/x.json')
    expect([unwritable.code, await exists('u1')]).toEqual([1, false])
    const full = new Writable({
      write: (_chunk, _encoding, done) =>
        done(Object.assign(new Error('full'), { code: 'ENOSPC', syscall: 'write' })),
    })
    full.on('error', () => {})
    const ended = await runCli(['agent', 'create', 'u2'], { env, stdout: full })
    expect([ended.code, await exists('u2')]).toEqual([1, false])
    expect(ended.stderr).toMatch(/u2 was deleted again[\s\S]*the disk is full/)
  })

  test('Ctrl-C while the answer is on its way: it says what to look for', async () => {
    const controller = new AbortController()
    const { store } = world.app.core
    const commit = store.commit.bind(store)
    store.commit = async (change) => {
      const outcome = await commit(change)
      const isOurs = change.some((step) => step.op === 'insert' && step.table === 'agents')
      if (isOurs) controller.abort(new Interrupted(2))
      return outcome
    }
    try {
      const ended = await runCli(['agent', 'create', 'c1'], { env, signal: controller.signal })
      expect([ended.code, ended.stdout]).toEqual([130, ''])
      expect(ended.stderr).toBe(
        'Check with `mayfly agent show c1` whether the agent was created. If so, its secrets are lost.\n',
      )
    } finally {
      store.commit = commit
    }
  })

  test.each<[string, string[], number, RegExp]>([
    ['a taken name', ['a1'], 1, /already exists/],
    ['a name of no form', ['a b'], 2, /name/],
    ['a scope of no form', ['x1', '--scope', '!'], 2, /scope/],
    ['a time of no form', ['x1', '--expires-in', 'soon'], 2, /^mayfly: --expires-in is not a duration/],
    ['no name', [], 2, /The argument "name" is missing/],
  ])('refused: %s', async (_, argv, code, message) => {
    const ended = await mayfly('agent', 'create', ...argv)
    expect([ended.code, ended.stdout, ended.stderr]).toEqual([code, '', expect.stringMatching(message)])
    expect(ended.stderr.trimEnd().split('\n')).toHaveLength(1)
  })
})

test('agent ls and rm', async () => {
  await mayfly('agent', 'create', 'r1')
  expect((await mayfly('agent', 'ls')).stdout).toMatch(
    /^NAME +SCOPES +EXPIRES +LAST USED +POLICY +OWNER$[\s\S]*^r1 +never +never +local$/m,
  )
  expect(JSON.parse((await mayfly('agent', 'ls', '--json')).stdout)).toContainEqual(
    expect.objectContaining({ name: 'r1' }),
  )
  expect((await mayfly('agent', 'rm', 'r1')).code).toBe(2)
  expect((await runTyping(['agent', 'rm', 'R1'], env, [['[y/N] ', '']])).stderr).toMatch(
    /Nothing was deleted\.\n$/,
  )
  expect(await exists('r1')).toBe(true)
  expect((await runTyping(['agent', 'rm', 'R1'], env, [['Delete the agent r1', 'yes']])).stdout).toBe(
    'Deleted r1.\n',
  )
  expect(await exists('r1')).toBe(false)
  const gone = await mayfly('agent', 'rm', 'r1', '--yes', '--json')
  expect([gone.code, JSON.parse(gone.stderr).error]).toEqual([
    1,
    { code: 'agent_not_found', message: 'No such agent.', hint: 'List them with `mayfly agent ls`.' },
  ])
  expect((await mayfly('agent', 'show', 'r1')).code).toBe(1)
})

describe('callers that may create agents', () => {
  /** How `agent ls` comes in. The server records the first read of each minute. */
  const cameBy = async (...given: Parameters<typeof runCli>) => {
    world.app.advance(61_000)
    expect((await runCli(...given)).code).toBe(0)
    const { entries } = (await world.app.local.get('/api/v1/audit?action=admin.local_access')).body
    return entries.find((one: { details: { route: string } }) => one.details.route === 'GET /v1/admin/agents')
      ?.auth_method
  }

  test('the socket in the data directory', async () => {
    expect(await cameBy(['agent', 'ls'], { env })).toBe('unix_socket')
  })
  test('the local rule, without the data directory', async () => {
    const { env: bare } = await newHome()
    expect(await cameBy(['agent', 'ls', '--server', world.url], { env: bare })).toBe('loopback')
  })
  test('an agent with the admin scope, as from afar', async () => {
    const far = await startApp({ ownIssuer: true, argv: { localAdmin: 'off' } })
    try {
      const admin = await far.newAgent({ scopes: ['admin:agents:*'] })
      const plain = await far.newAgent({ scopes: ['demo:*'] })
      const { env: bare } = await newHome()
      const as = (token: string, ...argv: string[]) =>
        runCli(argv, { env: { ...bare, MAYFLY_SERVER: far.url, MAYFLY_TOKEN: token } })
      expect((await as(admin.token, 'agent', 'ls')).code).toBe(0)
      for (const argv of ['agent ls', 'agent create x', 'agent rm x --yes', 'agent show x']) {
        const refused = await as(plain.token, ...argv.split(' '))
        expect([refused.code, refused.stdout]).toEqual([5, ''])
        expect(refused.stderr).toMatch(/admin:agents:(?:read|write)/)
      }
      expect((await as(admin.token, 'backend', 'ls')).stderr).toContain('admin:backends:read')
      expect((await as('ckr_'.padEnd(52, '0'), 'agent', 'ls')).code).toBe(4)
      const nobody = await runCli(['agent', 'ls'], { env: { ...bare, MAYFLY_SERVER: far.url } })
      expect([nobody.code, nobody.stderr]).toEqual([4, expect.stringContaining('--data-dir')])
    } finally {
      await far.close()
    }
  })
})

test('an agent without secrets says under which entry it came, and has nothing to rotate', async () => {
  const { app } = world
  app.core.identities.setTrusted({
    identities: [entry('github', { agent: template('ci-{run_id}') })],
    platforms: [],
  })
  expect((await exchange(app, workload(app, { run_id: '42' }))).status).toBe(200)
  const shown = await mayfly('agent', 'show', 'ci-42')
  expect([shown.code, shown.stderr]).toEqual([0, ''])
  expect(shown.stdout).toMatch(/^keyless: +identity github: https:\/\/issuer\.test 42$/m)
  const json = JSON.parse((await mayfly('agent', 'show', 'ci-42', '--json')).stdout)
  expect(json).toMatchObject({ signing_key_id: null, identity: { name: 'github', values: ['42'] } })
  const rotated = await mayfly('agent', 'rotate', 'ci-42', '--yes')
  expect(rotated.code).not.toBe(0)
  expect(rotated.stderr).toContain('has no secrets')
  const created = await mayfly('agent', 'create', 'ci-43')
  expect(created.code).not.toBe(0)
  expect(created.stderr).toContain('"github"')
})
