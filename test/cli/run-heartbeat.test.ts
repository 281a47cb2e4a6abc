import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/app.ts'
import { json, problem, scripted } from '../support/scripted-server.ts'
import { newRunner, openGate, recordsOf } from './run-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
/** Of tests that run side by side, which have no `onTestFinished` of their own. */
const cleanUps: (() => unknown)[] = []
beforeAll(async () => {
  world = await startWorld({ jobs: true })
})
afterAll(async () => {
  await Promise.all(cleanUps.map((step) => step()))
  await world.close()
})

interface ShownRun {
  readonly id: string
  readonly state: string
  readonly reason: string | null
  readonly purpose: string | null
  readonly heartbeat: string
  readonly last_beat: string
  readonly started_at: string
}

/** The one run of the agent. */
async function runOf({ name }: { readonly name: string }): Promise<ShownRun> {
  const { body } = await world.app.admin('GET', `/v1/admin/runs?agent=${name}`)
  expect(body).toHaveLength(1)
  return body[0]
}

/** `mayfly run` with a heartbeat of a second, whose command has started. */
async function started(script: string, argv: readonly string[] = [], url = world.url) {
  const { agent, env } = await newRunner(world)
  const words = [
    'run',
    '--backend',
    'demo',
    '--heartbeat',
    '1s',
    ...argv,
    '--',
    'sh',
    '-c',
    `echo ready; ${script}`,
  ]
  const run = spawnCli(words, { env: { ...env, MAYFLY_SERVER: url }, stdin: 'open' })
  cleanUps.push(() => run.child.kill('SIGKILL'))
  await run.said('ready', 'stdout')
  return { agent, env, run }
}

const endByAdmin = (id: string) => world.app.admin('DELETE', `/v1/admin/runs/${id}`)

// Most wait for heartbeats, so they wait together.
describe.concurrent('mayfly run', () => {
  test('begins a run, beats, issues with it, and ends it', async () => {
    const { agent, run } = await started('cat', ['--purpose', 'nightly \u001b[2J'])
    const begun = await runOf(agent)
    expect(begun).toMatchObject({ state: 'running', heartbeat: '1s', purpose: 'nightly \u001b[2J' })
    const { body } = await world.app.admin('GET', `/v1/admin/tokens?run=${begun.id}`)
    expect(body).toMatchObject([{ run: begun.id, status: 'active' }])
    await eventually(async () => {
      const { last_beat, started_at } = await runOf(agent)
      expect(Date.parse(last_beat) - Date.parse(started_at)).toBeGreaterThan(1_800)
    })
    run.child.stdin?.end()
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await runOf(agent)).toMatchObject({ state: 'ended', reason: 'completed' })
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  })

  test('without a run, with --no-run', async () => {
    const { agent, env } = await newRunner(world)
    const end = await spawnCli(['run', '--json', '--no-run', '--backend', 'demo', 'true'], { env }).ended
    expect(JSON.parse(end.stderr)).toMatchObject({ run: null, credentials: [{ revoked: true }] })
    expect((await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)).body).toEqual([])
  })

  test('survives a server that goes away for less than the run lives, and so does the run', async () => {
    const gate = await openGate(world.url)
    cleanUps.push(() => gate.close())
    const { agent, run } = await started('cat', [], gate.url)
    gate.on('POST run', 'drop')
    await gate.dropped('POST run')
    gate.on('POST run', 'pass')
    const before = (await runOf(agent)).last_beat
    await eventually(async () => expect((await runOf(agent)).last_beat > before).toBe(true))
    expect(await runOf(agent)).toMatchObject({ state: 'running' })
    run.child.stdin?.end()
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' })
  })

  test('survives a server that hangs, and says what it knows', async () => {
    const gate = await openGate(world.url)
    cleanUps.push(() => gate.close())
    const { agent, run } = await started('cat', [], gate.url)
    gate.on('POST run', 'hold')
    await run.said(/has heard no heartbeat of run_\w{26} .* It does not answer in time\. Retrying\.\n$/)
    gate.release('POST run')
    await run.said(/the server takes the heartbeats of run_\w{26} again\.\n$/)
    expect(await runOf(agent)).toMatchObject({ state: 'running' })
    run.child.stdin?.end()
    expect(await run.ended).toMatchObject({ code: 0, stdout: 'ready\n' })
  })

  test('says that nobody heard its heartbeats for long, and its command lives until the end is known', async () => {
    const gate = await openGate(world.url)
    cleanUps.push(() => gate.close())
    const { agent, run } = await started(
      'trap "echo got it; exit 3" TERM; while :; do sleep 0.05; done',
      [],
      gate.url,
    )
    gate.on('POST run', 'drop')
    // On a slow machine a beat can be late before it is dropped.
    await run.said(
      /^mayfly: the server has heard no heartbeat of run_\w{26} for so long .* (Cannot reach .*|It does not answer in time\.) Retrying\.\n$/,
    )
    await eventually(async () => expect(await runOf(agent)).toMatchObject({ reason: 'missed_heartbeat' }))
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
    expect(run.child.exitCode).toBe(null)
    gate.on('POST run', 'pass')
    const end = await run.ended
    expect(end).toMatchObject({ code: 3, stdout: 'ready\ngot it\n' })
    expect(end.stderr).toMatch(
      /was ended, because the server heard no heartbeat of it for too long\. .* gets SIGTERM\.\n$/,
    )
  })

  test('tells its command at once when an administrator has ended the run', async () => {
    const { agent, run } = await started('cat')
    const { id } = await runOf(agent)
    await endByAdmin(id)
    expect(await run.ended).toMatchObject({
      code: 143,
      stderr: expect.stringMatching(
        new RegExp(
          `^mayfly: ${id} was ended by \\S+\\. Its credentials no longer work; the command gets SIGTERM\\.\n$`,
        ),
      ),
    })
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  })

  test('sends the signal that --on-end names, and SIGKILL after the grace period', async () => {
    const { agent, run } = await started('trap "echo usr1" USR1; while :; do sleep 0.05; done', [
      '--on-end',
      'usr1',
      '--grace',
      '3s',
    ])
    await endByAdmin((await runOf(agent)).id)
    expect(await run.ended).toMatchObject({
      code: 137,
      stdout: 'ready\nusr1\n',
      stderr: expect.stringMatching(
        /gets SIGUSR1\.\nmayfly: the command did not exit within 3 s and was killed\.\n$/,
      ),
    })
  })

  test('killed with SIGKILL: its credentials end four heartbeats later at the latest', async () => {
    const { agent, run } = await started('cat')
    const killedAt = Date.now()
    run.child.kill('SIGKILL')
    await eventually(async () => expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }]))
    // Up to four intervals after a beat, and the half second in which the job looks; the rest is for a machine that stops for
    // some. The credential itself lasts for minutes.
    expect(Date.now() - killedAt).toBeLessThan(12_000)
    expect(await runOf(agent)).toMatchObject({ state: 'ended', reason: 'missed_heartbeat' })
  })

  test('renews for the same run', async () => {
    const { agent, env } = await newRunner(world)
    const script = 'first=$(cat "$T"); until [ "$(cat "$T")" != "$first" ]; do sleep 0.05; done'
    const argv = ['run', '--file', 'T=demo', '--ttl', '1500ms', '--', 'sh', '-c', script]
    expect(await spawnCli(argv, { env }).ended).toMatchObject({ code: 0, stderr: '' })
    const { id } = await runOf(agent)
    const { body } = await world.app.admin('GET', `/v1/admin/tokens?agent=${agent.name}`)
    expect(body.length).toBeGreaterThan(1)
    expect(body.every((one: { run?: string }) => one.run === id)).toBe(true)
  })

  test('with the token of a run makes no run of its own, and its credentials belong to that run', async () => {
    const { agent, env } = await newRunner(world)
    const run = (await agent.client.post('/v1/runs', {})).body.id
    const form = new URLSearchParams({ grant_type: 'client_credentials', run, ...agent.oidc })
    const reply = await fetch(`${world.url}/oauth/token`, { method: 'POST', body: form })
    const { access_token } = (await reply.json()) as { access_token: string }
    const argv = ['run', '--verbose', '--json', '--backend', 'demo', 'true']
    const end = await spawnCli(argv, { env: { ...env, MAYFLY_TOKEN: access_token } }).ended
    expect(end.code).toBe(0)
    const [said = '', report = ''] = end.stderr.trim().split('\n')
    expect(said).toBe('mayfly: the login is of a run, with which all credentials end.')
    expect(JSON.parse(report)).toMatchObject({ run: null, credentials: [{ revoked: true }] })
    const { body } = await world.app.admin('GET', `/v1/admin/tokens?run=${run}`)
    expect(body).toHaveLength(1)
    expect(await runOf(agent)).toMatchObject({ state: 'running' })
    expect(
      (await world.app.admin('GET', `/v1/admin/audit?agent=${agent.name}&action=auth.failed`)).body,
    ).toEqual([])
  })
})

describe('a server of an older version', () => {
  const ISSUED = {
    id: 'cred_1',
    token: 'x',
    backend: 'demo',
    scopes: [],
    created_at: '2026-01-01T00:00:00.000Z',
    expires_at: '2026-01-01T00:10:00.000Z',
  }

  test.each([
    ['nothing is said', [], ''],
    [
      'one line with --verbose',
      ['--verbose'],
      'mayfly: the server has no runs: the credentials of a command that is killed end at their expiry.\n',
    ],
  ])('is served as before: %s', async (_, options, stderr) => {
    const server = await scripted((request, response) => {
      if (request.url === '/v1/runs') return problem(404, 'not_found')(request, response)
      return json(200, request.method === 'POST' ? ISSUED : {})(request, response)
    })
    onTestFinished(async () => void (await server.close()))
    const env = { ...world.bareEnv, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` }
    const end = await spawnCli(['run', ...options, '--env', 'T=demo', '--', 'true'], { env }).ended
    expect(end).toMatchObject({ code: 0, stderr })
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /v1/runs',
      'POST /api/v1/credentials',
      'DELETE /api/v1/credentials/cred_1',
    ])
  })
})

test.each([
  [
    ['--on-end', 'SIGNOTHING'],
    /^mayfly: --on-end: "SIGNOTHING" is no signal\. Example: --on-end SIGINT\.\n$/,
  ],
  [['--on-end', 'toString'], /^mayfly: --on-end: "toString" is no signal\./],
  [['--on-end', '15'], /^mayfly: --on-end: "15" is no signal\./],
  [['--on-end', '\u001b[2J'], /^mayfly: --on-end: "\\u001b\[2J" is no signal\./],
  [['--heartbeat', '999ms'], /^mayfly: --heartbeat: "999ms" is not between 1s and 1h\./],
  [['--heartbeat', '2h'], /^mayfly: --heartbeat: "2h" is not between 1s and 1h\./],
  [['--heartbeat', 'soon'], /^mayfly: --heartbeat: "soon" is not a duration/],
])('refuses %j', async (options, stderr) => {
  const { agent, env } = await newRunner(world)
  const end = await runCli(['run', ...options, '--backend', 'demo', 'true'], { env })
  expect(end).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(stderr) })
  expect((await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)).body).toEqual([])
})

test.each([
  ['no heartbeat', { id: 'run_1' }],
  ['a heartbeat that never rests', { id: 'run_1', heartbeat: '1ms' }],
  ['a heartbeat that never comes', { id: 'run_1', heartbeat: '52w' }],
  ['an id that is a path', { id: '../v1/self', heartbeat: '10s' }],
])('refuses a run with %s, and issues nothing', async (_, run) => {
  const server = await scripted(json(200, run))
  onTestFinished(async () => void (await server.close()))
  const env = { ...world.bareEnv, MAYFLY_SERVER: server.url, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` }
  const end = await runCli(['run', '--env', 'T=demo', '--', 'true'], { env })
  expect(end).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining('The server sent a run without'),
  })
  expect(server.seen.map(({ url }) => url)).toEqual(['/v1/runs'])
})
