import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner } from './run-support.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ jobs: true })
})
afterAll(() => world.close())

const HOSTILE = '\u001b[2J\u0007<script>alert(1)</script>\r\nrun_x  ended\u202e\u{1f600}'
const UNKNOWN = 'run_06dzw5k9q2v6x1m8t3c7n4p0hb'
/** What steers a terminal, beside line breaks. */
const STEERING = /[\p{Cc}\u202e]/v

const lines = (text: string) => text.trimEnd().split('\n')

/** An agent with a run that has a credential, and its environment. */
async function withRun(body: object = {}) {
  const { agent, env } = await newRunner(world)
  const run: string = (await agent.client.post('/v1/runs', body)).body.id
  await agent.client.post('/v1/credentials/demo', { run })
  return { agent, env, run }
}

/** Whoever has all rights on this machine, by the administrator's token. */
async function administrator() {
  const agent = await world.app.newAgent({ scopes: ['admin:*'] })
  return { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_TOKEN: agent.token }
}

test('an agent lists, shows and ends its own runs only', async () => {
  const { env, run, agent } = await withRun({ purpose: 'nightly report', heartbeat: '30s' })
  const other = await withRun()
  const listed = await runCli(['runs', 'ls'], { env })
  expect(listed.code).toBe(0)
  const [heading, row, ...more] = lines(listed.stdout)
  expect(heading).toMatch(/^RUN +STATE +CREDENTIALS +STARTED +LAST BEAT +PURPOSE$/)
  expect(row).toMatch(new RegExp(`^${run} +running +1 .* nightly report$`))
  expect(more).toEqual([])
  expect(JSON.parse((await runCli(['runs', 'ls', '--json'], { env })).stdout)).toMatchObject([
    { id: run, purpose: 'nightly report', credentials: { live: 1 } },
  ])
  const shown = await runCli(['runs', 'show', run], { env })
  expect(shown.stdout).toMatch(/^purpose: +nightly report$/m)
  expect(shown.stdout).toMatch(/^heartbeat: +every 30s$/m)
  expect(shown.stdout).toMatch(/^dead without another: +\S+Z \(in .*\)$/m)
  for (const verb of ['show', 'end'])
    expect(await runCli(['runs', verb, other.run], { env })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('There is no such run.'),
    })
  expect(await runCli(['runs', 'end', run], { env })).toEqual({
    code: 0,
    stdout: '',
    stderr: `Ended ${run}.\n`,
  })
  const left = await world.app.admin('GET', `/v1/admin/tokens?agent=${agent.name}&status=active`)
  expect(left.body).toEqual([])
  expect(await runCli(['runs', 'ls'], { env })).toMatchObject({ stdout: '', stderr: 'No running runs.\n' })
  const ended = await runCli(['runs', 'ls', '--state', 'ended'], { env })
  expect(ended.stdout).toMatch(new RegExp(`^${run} +ended, completed +0 `, 'm'))
  expect((await runCli(['runs', 'show', run], { env })).stdout).toMatch(/^reason: +completed$/m)
})

test('an administrator lists, shows and ends those of all agents', async () => {
  const { run, agent } = await withRun()
  const env = await administrator()
  const listed = await runCli(['runs', 'ls', '--agent', agent.name], { env })
  const [heading, row] = lines(listed.stdout)
  expect(heading).toMatch(/^RUN +AGENT +STATE /)
  expect(row).toMatch(new RegExp(`^${run} +${agent.name} +running `))
  expect((await runCli(['runs', 'ls', '--all-agents'], { env })).stdout).toContain(run)
  expect((await runCli(['runs', 'show', '--all-agents', run], { env })).stdout).toContain(agent.name)
  const end = await runCli(['runs', 'end', '--json', '--all-agents', run, UNKNOWN], { env })
  expect([end.code, JSON.parse(end.stdout)]).toEqual([1, [{ id: run, ended: true }]])
  expect(end.stderr).toContain(`mayfly: ${UNKNOWN} was not ended.`)
  const { body } = await world.app.admin('GET', `/v1/admin/runs/${run}`)
  expect(body).toMatchObject({ state: 'ended', reason: 'ended_by' })
  const typo = await runCli(['runs', 'ls', '--agent', 'nobody-of-this-name'], { env })
  expect(typo).toMatchObject({ code: 1, stderr: expect.stringContaining('No agent has, or ever had') })
})

test('an agent without the scope of an administrator sees no run of another', async () => {
  const { env } = await withRun()
  for (const argv of [
    ['ls', '--all-agents'],
    ['show', '--all-agents', UNKNOWN],
    ['end', '--all-agents', UNKNOWN],
  ])
    expect(await runCli(['runs', ...argv], { env })).toMatchObject({ code: 5, stdout: '' })
})

test.each([60, 200])(
  'a hostile purpose steers no terminal of %i columns, and forges no line',
  async (columns) => {
    const { env, run } = await withRun({ purpose: HOSTILE })
    const listed = await runCli(['runs', 'ls'], { env: { ...env, NO_COLOR: '1' }, tty: true, columns })
    expect(listed.code).toBe(0)
    expect(lines(listed.stdout)).toHaveLength(2)
    for (const line of lines(listed.stdout)) {
      expect(line).not.toMatch(STEERING)
      expect(line.length).toBeLessThanOrEqual(columns)
    }
    const shown = await runCli(['runs', 'show', run], { env: { ...env, NO_COLOR: '1' }, tty: true, columns })
    for (const line of lines(shown.stdout)) expect(line).not.toMatch(STEERING)
    expect(shown.stdout).not.toMatch(/^run_x/m)
    const raw = await runCli(['runs', 'show', '--json', run], { env })
    expect(JSON.parse(raw.stdout).purpose).toBe(HOSTILE)
    expect(raw.stdout).not.toContain('\u001b')
  },
)

test.each([60, 80, 200])(
  'its lines fit into a terminal of %i columns, for everybody who may list',
  async (columns) => {
    const purpose = 'the nightly report of all orders, as finance has asked for it in a long sentence'
    const { env, run, agent } = await withRun({ purpose })
    const ended = (await agent.client.post('/v1/runs', { purpose })).body.id
    await world.app.admin('DELETE', `/v1/admin/runs/${ended}`)
    const everybody = [
      [['runs', 'ls'], env],
      [['runs', 'ls', '--all-agents'], await administrator()],
      [['runs', 'ls', '--data-dir', world.app.directory], world.bareEnv],
    ] as const
    for (const [argv, of] of everybody) {
      const wish = { env: { ...of, NO_COLOR: '1' }, tty: true, columns }
      const { code, stdout } = await runCli([...argv, '--state', 'all'], wish)
      expect(code).toBe(0)
      expect(stdout).toContain(run)
      expect(stdout).toContain(ended)
      expect(stdout.includes('the nightly report of all orders')).toBe(columns === 200)
      for (const line of lines(stdout)) expect(line.length).toBeLessThanOrEqual(columns)
    }
  },
)

test('audit --run shows what happened in a run, with its id on each line', async () => {
  const { run, agent } = await withRun({ purpose: HOSTILE })
  await agent.client.delete(`/v1/runs/${run}`)
  const env = await administrator()
  const { stdout, code } = await runCli(['audit', '--run', run], { env })
  expect(code).toBe(0)
  const shown = lines(stdout)
  const actions = shown.map((line) => line.split(/ {2,}/)[1])
  expect(actions.slice(0, 2)).toEqual(['run.started', 'credential.issued'])
  // In one commit.
  expect(actions.slice(2).sort()).toEqual(['credential.revoked', 'run.ended'])
  for (const line of shown) expect(line).toContain(run)
})

test('credentials ls --run lists what was issued for a run, to an administrator', async () => {
  const { run, agent, env } = await withRun()
  await agent.client.post('/v1/credentials/demo', {})
  const listed = await runCli(['credentials', 'ls', '--run', run], { env: await administrator() })
  const [heading, row, ...more] = lines(listed.stdout)
  expect(heading).toMatch(/^CREDENTIAL +AGENT +BACKEND /)
  expect(row).toMatch(new RegExp(`^cred_\\w+ +${agent.name} +demo `))
  expect(more).toEqual([])
  await agent.client.delete(`/v1/runs/${run}`)
  const argv = ['credentials', 'ls', '--json', '--status', 'all', '--run', run]
  const all = JSON.parse((await runCli(argv, { env: await administrator() })).stdout)
  expect(all).toMatchObject([{ agent_name: agent.name, status: 'revoked' }])
  expect(await runCli(['credentials', 'ls', '--run', run], { env })).toMatchObject({ code: 5, stdout: '' })
})

test('completes the ids of runs that live', async () => {
  const { env, run } = await withRun()
  const { stdout } = await runCli(['__complete', '--', 'runs', 'end', ''], { env })
  expect(stdout).toContain(run)
})
