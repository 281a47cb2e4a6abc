import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli, startWorld, type World } from './support.ts'

let world: World
/** Of an administrator without a login. */
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  await world.app.newBackend({ name: 'other', max_ttl: '1h', default_ttl: '10m' })
  env = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
})
afterAll(() => world.close())

const mayfly = (...argv: string[]) => runCli(argv, { env })
const holder = () => world.app.newAgent({ scopes: ['demo:*', 'other:*'] })
type Holder = Awaited<ReturnType<typeof holder>>
const issue = async (agent: Holder, backend = 'demo'): Promise<string> =>
  (await agent.client.post('/api/v1/credentials', { backend })).body.id
const active = async (agent: Holder): Promise<string[]> =>
  (await world.app.admin('GET', `/v1/admin/tokens?limit=1000&status=active&agent=${agent.name}`)).body.map(
    (row: { id: string }) => row.id,
  )

test('those of an agent, at one backend or at all, and nobody else’s', async () => {
  const [agent, bystander] = [await holder(), await holder()]
  const ids = [await issue(agent), await issue(agent), await issue(agent, 'other')]
  const kept = await issue(bystander)
  const one = await mayfly('revoke', '--agent', agent.name, '--backend', 'other', '--yes')
  expect(one).toEqual({
    code: 0,
    stdout: '',
    stderr: `Revoked 1 credential of agent ${agent.name} at backend other.\n`,
  })
  expect((await active(agent)).sort()).toEqual(ids.slice(0, 2).sort())
  const rest = await mayfly('revoke', '--agent', agent.id, '--yes', '--json')
  expect(
    JSON.parse(rest.stdout)
      .map((row: { id: string }) => row.id)
      .sort(),
  ).toEqual(ids.slice(0, 2).sort())
  expect(JSON.parse(rest.stdout)[0]).toEqual({
    id: expect.stringMatching(/^cred_/),
    agent_name: agent.name,
    backend: 'demo',
    revoked: true,
  })
  expect(await active(agent)).toEqual([])
  expect(await active(bystander)).toEqual([kept])
})

test('those of all agents at a backend, which it counts before it asks', async () => {
  const [one, two] = [await holder(), await holder()]
  await issue(one, 'other')
  await issue(two, 'other')
  const kept = await issue(two)
  const asked = await mayfly('revoke', '--backend', 'other', '--all-agents')
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('2 credentials (2 agents)') })
  expect(await active(one)).toHaveLength(1)
  const typed = await runCli(['revoke', '--backend', 'other', '--all-agents'], {
    env,
    tty: true,
    stdin: 'y\r',
  })
  expect(typed.code).toBe(0)
  expect(typed.stderr).toContain('Revoke 2 credentials (2 agents) of backend other?')
  expect([await active(one), await active(two)]).toEqual([[], [kept]])
})

test('--backend alone stays one’s own', async () => {
  const [one, two] = [await holder(), await holder()]
  const kept = await issue(two)
  await issue(one)
  await runCli(['revoke', '--backend', 'demo'], { env: { ...env, MAYFLY_TOKEN: one.token } })
  expect([await active(one), await active(two)]).toEqual([[], [kept]])
})

test('interrupted in the middle, it says how far it came; run again, it does the rest', async () => {
  const agent = await holder()
  for (let n = 0; n < 200; n += 1) await issue(agent)
  const controller = new AbortController()
  const argv = ['revoke', '--agent', agent.name, '--yes']
  const running = runCli(argv, { env, signal: controller.signal })
  while ((await active(agent)).length > 190) await new Promise((resolve) => setImmediate(resolve))
  controller.abort(new Error('interrupted'))
  const first = await running
  expect(first.code).not.toBe(0)
  expect(first.stderr).toMatch(/Revoked \d+ of 200\. Run it again for the others\./)
  expect((await active(agent)).length).toBeGreaterThan(0)
  expect(await mayfly(...argv)).toMatchObject({ code: 0 })
  expect(await active(agent)).toEqual([])
})

test('nothing to revoke is no error, and a name that nobody ever had is one', async () => {
  const agent = await holder()
  expect(await mayfly('revoke', '--agent', agent.name)).toEqual({
    code: 0,
    stdout: '',
    stderr: `There was nothing to revoke: no active credentials of agent ${agent.name}.\n`,
  })
  expect(await mayfly('revoke', '--agent', 'nosuch')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('No agent has, or ever had, this name or id.'),
  })
  expect(await mayfly('revoke', '--agent', agent.name, '--backend', 'nosuch')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no such backend.'),
  })
})

test.each([
  [['--all-agents']],
  [['--all-agents', '--all']],
  [['--all-agents', '--agent', 'x', '--backend', 'demo']],
  [['--agent', 'x', '--all']],
  [['--agent', 'x', 'cred_01']],
])('wrong usage: %j', async (argv) => {
  expect(await mayfly('revoke', ...argv)).toMatchObject({ code: 2, stdout: '' })
})

test('an agent without the scope is refused', async () => {
  const [agent, victim] = [await holder(), await holder()]
  const id = await issue(victim)
  const argv = ['revoke', '--agent', victim.name, '--yes']
  expect(await runCli(argv, { env: { ...env, MAYFLY_TOKEN: agent.token } })).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('admin:tokens:read'),
  })
  expect(await active(victim)).toEqual([id])
})
