import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { decide, POLICY_YAML, pendingOf, privateFiles } from './enroll-support.ts'
import { newHome, runCli, type SpawnEnd, spawnCli, startWorld, type World } from './support.ts'

let world: World
let home: { home: string; env: Record<string, string> }
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
})
afterAll(() => world.close())
beforeEach(async () => {
  home = await newHome()
  Object.assign(home.env, { MAYFLY_SERVER: world.url })
})
afterEach(async () => {
  for (const { id } of await pendingOf(world.app)) await decide(world.app, id, 'reject')
  await rm(home.home, { recursive: true })
})

const enroll = (argv: string[], more: object = {}) => runCli(['enroll', ...argv], { env: home.env, ...more })
const secretsOf = (output: string) => output.match(/ck[rs]_[0-9a-f]+|"d":/g)

async function status() {
  const end = await runCli(['status', '--json'], { env: home.env })
  return { code: end.code, ...(end.code === 0 ? JSON.parse(end.stdout) : {}) }
}

test('asks, waits for approval, then logs in with the key', async () => {
  const argv = ['enroll', '--name', 'waits', '--scope', 'demo', '--metadata', 'host=laptop']
  const child = spawnCli(argv, { env: home.env })
  const said = await child.said(/to approve, run: .*\n/)
  const [pending] = await pendingOf(world.app)
  expect(pending).toMatchObject({ name: 'waits', scopes: ['demo'], metadata: { host: 'laptop' } })
  expect(said).toContain('Waiting for an administrator to approve the agent waits.')
  expect(said).toContain(`enrollment:      ${pending?.id}\n`)
  expect(said).toContain(`key fingerprint: ${pending?.public_key_fingerprint}\n`)
  expect(said).toContain(`mayfly approve ${pending?.id} --server ${world.url}\n`)
  await decide(world.app, pending?.id ?? '', 'approve')
  const end: SpawnEnd = await child.ended
  expect(end).toMatchObject({ code: 0, stdout: '' })
  const kept = join(home.home, 'config/mayfly/secrets/default.login.json')
  expect(end.stderr).toContain(`Enrolled as the agent waits, with demo. Its key is stored in ${kept}.\n`)
  expect(secretsOf(end.stderr)).toBeNull()
  expect(await status()).toMatchObject({ code: 0, name: 'waits', login: 'private_key_jwt' })

  const files = await privateFiles(join(home.home, 'config'))
  expect(Object.keys(files).filter((path) => path.includes('enrollment.json'))).toEqual([])
  // The token and the client secret are not kept: the key does for both.
  for (const text of Object.values(files)) expect(text).not.toMatch(/ck[rs]_/)
})

test('is approved by a policy at once', async () => {
  const end = await enroll(['--name', 'ci-1', '--json'])
  expect({ code: end.code, stderr: end.stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(end.stdout)).toEqual({
    status: 'approved',
    agent: { id: expect.stringMatching(/^ag_/), name: 'ci-1' },
    scopes: ['demo'],
    server: world.url,
    profile: 'default',
    kept_in: 'file',
    place: expect.stringContaining('default.login.json'),
  })
  expect((await runCli(['get', 'demo'], { env: home.env })).code).toBe(0)
})

test('--no-wait exits, and the next run collects the answer', async () => {
  const left = await enroll(['--name', 'later', '--no-wait', '--json'])
  const [pending] = await pendingOf(world.app)
  expect(left.code).toBe(0)
  expect(JSON.parse(left.stdout)).toEqual({
    status: 'pending',
    enrollment_id: pending?.id,
    fingerprint: pending?.public_key_fingerprint,
    approve: `mayfly approve ${pending?.id} --server ${world.url}`,
    server: world.url,
    profile: 'default',
    expires_at: expect.stringMatching(/Z$/),
  })
  const again = await enroll(['--no-wait'])
  expect([again.code, again.stderr]).toEqual([
    0,
    expect.stringContaining('Once it is approved, run: mayfly enroll\n'),
  ])
  expect(await pendingOf(world.app)).toHaveLength(1)
  expect((await status()).code).toBe(4)

  await decide(world.app, pending?.id ?? '', 'approve', { scopes: [] })
  const { MAYFLY_SERVER: _, ...env } = home.env
  const end = await runCli(['enroll'], { env })
  expect([end.code, end.stderr]).toEqual([0, expect.stringContaining('the agent later, with no scopes.')])
})

test('--timeout waits that long, and the next run collects the answer', async () => {
  const left = await enroll(['--name', 'patient', '--timeout', '1ms'])
  expect([left.code, left.stdout]).toEqual([1, ''])
  expect(left.stderr).toMatch(
    /The enrollment is still pending\. Once it is approved, run: mayfly enroll\.?\n$/,
  )
  const [pending] = await pendingOf(world.app)
  expect(left.stderr).toContain(`mayfly approve ${pending?.id}`)
  await decide(world.app, pending?.id ?? '', 'approve')
  expect((await enroll(['--timeout', '1m'])).code).toBe(0)
  expect(await status()).toMatchObject({ name: 'patient' })
})

test.each([
  [['--timeout', 'soon']],
  [['--timeout', '0s']],
  [['--timeout', '8d']],
  [['--timeout', '5m', '--no-wait']],
])('wrong usage: %j', async (argv) => {
  expect((await enroll(['--name', 'x', ...argv])).code).toBe(2)
  expect(await pendingOf(world.app)).toEqual([])
})

test('prompts for the name on a terminal', async () => {
  const end = await enroll(['--no-wait'], { tty: true, stdin: 'ci-asked\n' })
  expect([end.code, end.stderr]).toEqual([
    0,
    expect.stringMatching(/Name of the agent: [\s\S]*agent ci-asked, with demo/),
  ])
})

test('continues with the same key and id after Ctrl-C', async () => {
  const child = spawnCli(['enroll', '--name', 'stops', '--server', world.url], { env: home.env })
  await child.said('to approve, run')
  child.child.kill('SIGINT')
  const end = await child.ended
  expect(end).toMatchObject({ code: 130, stdout: '' })
  expect(end.stderr).toMatch(new RegExp(`To continue: mayfly enroll --server ${world.url}\n$`))
  const [pending, ...more] = await pendingOf(world.app)
  expect(more).toEqual([])
  await decide(world.app, pending?.id ?? '', 'approve')
  expect((await enroll([])).code).toBe(0)
  expect(await status()).toMatchObject({ name: 'stops' })
})

describe('with an existing login', () => {
  test('of that agent, asks for nothing', async () => {
    await enroll(['--name', 'ci-2'])
    for (const argv of [[], ['--name', 'CI-2'], ['--name', 'ci-2', '--restart']]) {
      const end = await enroll([...argv, '--json'])
      expect([end.code, JSON.parse(end.stdout)]).toEqual([
        0,
        expect.objectContaining({ status: 'approved', agent: { id: expect.any(String), name: 'ci-2' } }),
      ])
    }
  })

  test('of another agent, does not replace it', async () => {
    await enroll(['--name', 'ci-3'])
    const end = await enroll(['--name', 'ci-4'])
    expect([end.code, end.stderr]).toEqual([
      1,
      'mayfly: The profile default is already logged in as ci-3. Choose another with --profile, or run `mayfly logout` first.\n',
    ])
    expect((await enroll(['--name', 'ci-4', '--profile', 'four'])).code).toBe(0)
    expect((await status()).name).toBe('ci-3')
  })

  test('of an agent that has ended, replaces it', async () => {
    await enroll(['--name', 'ci-5'])
    const agent = await status()
    expect((await world.app.admin('DELETE', `/v1/admin/agents/${agent.name}`)).status).toBeLessThan(300)
    expect((await enroll(['--name', 'ci-5'])).code).toBe(0)
    expect(await status()).toMatchObject({ name: 'ci-5', id: expect.not.stringMatching(agent.id) })
  })

  test('in the environment, reports that it takes precedence', async () => {
    const env = { ...home.env, MAYFLY_TOKEN: world.agent.token }
    const end = await runCli(['enroll', '--name', 'ci-6'], { env })
    expect([end.code, end.stderr]).toEqual([
      0,
      expect.stringMatching(/\nMAYFLY_TOKEN is set and takes precedence over this login\. Unset it\.\n$/),
    ])
  })
})
