import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../support/app.ts'
import { presetToken } from '../support/preset-tokens.ts'
import { startServerProcess } from '../support/server-process.ts'
import { type Job, runStep, type Step } from './fake-runner.ts'
import { type KeylessWorld, startKeylessWorld } from './keyless-world.ts'

const pinned = Object.fromEntries(presetToken('github').pinned)
const ENTRY = { subject_pattern: '.+', claims: pinned, agent: 'ci-{run_id}', scopes: ['demo:*'] }

let world: KeylessWorld
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-runner-'))
  world = await startKeylessWorld({ preset: 'github', entry: ENTRY })
})
afterAll(async () => {
  await world.close()
  await rm(directory, { recursive: true, force: true })
})

const GITHUB = {
  GITHUB_REPOSITORY: 'octo-org/octo-repo',
  GITHUB_WORKFLOW: 'nightly\u001b[31m',
  GITHUB_JOB: 'report',
}
const jobOf = (of: KeylessWorld): Job => ({
  directory,
  env: { PATH: process.env['PATH'] ?? '', ...GITHUB, ...of.issuer.jobEnv },
})

const runOf = async (of: KeylessWorld, { outputs }: Step) =>
  (await of.app.admin('GET', `/v1/admin/runs/${outputs['run']}`)).body

/** The processes that beat for this session. */
function beaters({ state }: Pick<Step, 'state'>): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return line.includes('beat.mjs') && line.includes(state['directory'] ?? '?')
      } catch {
        return false
      }
    })
    .map(Number)
}

const masked = ({ commands }: Step) =>
  commands.filter(({ name }) => name === 'add-mask').map(({ data }) => data)
const errors = ({ commands }: Step) => commands.filter(({ name }) => name === 'error').map(({ data }) => data)

test('a job gets credentials by its identity, which end with the job', async () => {
  const inputs = {
    server: `${world.url}/`,
    env: 'API_TOKEN=demo\n\n# twice\nAPI_ID=demo:id',
    heartbeat: '1s',
  }
  const main = await runStep(jobOf(world), 'main', inputs)
  expect(main).toMatchObject({ code: 0, stderr: '' })
  expect(world.issuer.asked).toEqual([world.url])
  expect(await world.agents()).toEqual(['ci-29679449'])
  expect(main.outputs).toEqual({ run: expect.stringMatching(/^run_/) })
  expect(main.env).toEqual({
    API_TOKEN: expect.stringMatching(/^eyJ/),
    API_ID: expect.stringMatching(/^cred_/),
    MAYFLY_SERVER: world.url,
  })
  // The log of the step has the secret only in the command that masks it.
  expect(masked(main)).toContain(main.env['API_TOKEN'])
  expect(main.commands.every(({ name }) => name === 'add-mask')).toBe(true)

  const begun = await runOf(world, main)
  expect(begun).toMatchObject({
    state: 'running',
    heartbeat: '1s',
    purpose: 'octo-org/octo-repo: nightly [31m, job report',
    agent: { name: 'ci-29679449' },
    credentials: { live: 1 },
  })
  await eventually(async () => {
    expect(Date.parse((await runOf(world, main)).last_beat)).toBeGreaterThan(Date.parse(begun.last_beat))
  })
  expect(beaters(main)).toHaveLength(1)

  const post = await runStep(jobOf(world), 'post', inputs, main.state)
  expect(post).toMatchObject({ code: 0, stdout: '', stderr: '' })
  expect(await runOf(world, main)).toMatchObject({
    state: 'ended',
    reason: 'completed',
    credentials: { live: 0 },
  })
  expect(await world.agents()).toEqual([])
  await eventually(async () => expect(beaters(main)).toEqual([]))
  expect(existsSync(main.state['directory'] ?? '')).toBe(false)
})

test('the server may be known by another audience than its address', async () => {
  const audience = 'https://mayfly.example.com'
  const dataDir = await mkdtemp(join(directory, 'data-'))
  const entry = { name: 'ci', issuer: world.issuer.url, local: true, audience, ...ENTRY }
  await writeFile(join(dataDir, 'mayfly.yaml'), JSON.stringify({ identities: [entry] }))
  const server = await startServerProcess({ dataDir, flags: ['--config', join(dataDir, 'mayfly.yaml')] })
  try {
    const backend = { type: 'jwt', name: 'demo', config: { audience: 'tests' } }
    expect((await server.call(undefined, 'POST', '/v1/admin/backends', backend)).status).toBe(200)
    const inputs = { server: server.address, audience, env: 'API_TOKEN=demo' }
    const main = await runStep(jobOf(world), 'main', inputs)
    expect(main).toMatchObject({ code: 0, env: { API_TOKEN: expect.stringMatching(/^eyJ/) } })
    expect(world.issuer.asked.at(-1)).toBe(audience)
    const path = `/v1/admin/runs/${main.outputs['run']}`
    expect((await server.call(undefined, 'GET', path)).body).toMatchObject({ state: 'running' })
    expect(await runStep(jobOf(world), 'post', inputs, main.state)).toMatchObject({ code: 0, stdout: '' })
    expect((await server.call(undefined, 'GET', path)).body).toMatchObject({ state: 'ended' })
    expect((await server.call(undefined, 'GET', '/v1/admin/agents')).body).toEqual([])
  } finally {
    await server.terminate()
  }
})

test('a job that ends leaves the agent to another job of the same identity', async () => {
  const inputs = { server: world.url, env: 'API_TOKEN=demo', heartbeat: '10s', purpose: 'one of two' }
  const first = await runStep(jobOf(world), 'main', inputs)
  const second = await runStep(jobOf(world), 'main', inputs)
  await runStep(jobOf(world), 'post', inputs, first.state)
  expect(await world.agents()).toEqual(['ci-29679449'])
  expect(await runOf(world, first)).toMatchObject({ state: 'ended', credentials: { live: 0 } })
  expect(await runOf(world, second)).toMatchObject({ state: 'running', credentials: { live: 1 } })
  await runStep(jobOf(world), 'post', inputs, second.state)
  expect(await world.agents()).toEqual([])
})

test('the process that beats logs in again when its access token ends, and the agent ends with the job all the same', async () => {
  const short = await startKeylessWorld({ preset: 'github', entry: { ...ENTRY, token_ttl: '5s' } })
  try {
    const inputs = { server: short.url, env: 'API_TOKEN=demo', heartbeat: '1s' }
    const main = await runStep(jobOf(short), 'main', inputs)
    await eventually(async () => expect(short.issuer.asked.length).toBeGreaterThan(2))
    expect(await runOf(short, main)).toMatchObject({ state: 'running', credentials: { live: 1 } })
    expect(await runStep(jobOf(short), 'post', inputs, main.state)).toMatchObject({ code: 0, stdout: '' })
    expect(await runOf(short, main)).toMatchObject({ state: 'ended', reason: 'completed' })
    expect(await short.agents()).toEqual([])
  } finally {
    await short.close()
  }
})

test('nothing is left of a step that fails, although the job goes on', async () => {
  const inputs = { server: world.url, env: 'API_TOKEN=demo\nOTHER=absent' }
  const main = await runStep(jobOf(world), 'main', inputs)
  expect(main).toMatchObject({ code: 1, env: {}, outputs: {} })
  expect(errors(main)).toEqual([expect.stringContaining('absent')])
  expect(await world.agents()).toEqual([])
  expect(await runStep(jobOf(world), 'post', inputs, main.state)).toMatchObject({ code: 0, stdout: '' })
})

test('a field that the credential lacks is named, and nothing is exported', async () => {
  const main = await runStep(jobOf(world), 'main', { server: world.url, env: 'A=demo\nB=demo:password' })
  expect(main).toMatchObject({ code: 1, env: {} })
  expect(errors(main)).toEqual([expect.stringContaining('no field "password"')])
  expect(await world.agents()).toEqual([])
})

test('a token that no entry accepts is refused in words that say who must act', async () => {
  const main = await runStep(jobOf(world), 'main', {
    server: world.url,
    audience: 'https://other.example.com',
  })
  expect(world.issuer.asked.at(-1)).toBe('https://other.example.com')
  expect(main).toMatchObject({ code: 1, env: {} })
  expect(errors(main)).toEqual([expect.stringContaining('An administrator finds the reason in the audit')])
})

test('a job without the permission is told so', async () => {
  const job = { ...jobOf(world), env: { PATH: process.env['PATH'] ?? '' } }
  const main = await runStep(job, 'main', { server: world.url })
  expect(main.code).toBe(1)
  expect(errors(main)).toEqual([expect.stringContaining('id-token: write')])
})

test('GitHub is asked again while it is busy', async () => {
  world.issuer.failures.push(503, 429)
  const main = await runStep(jobOf(world), 'main', { server: world.url })
  expect(main).toMatchObject({ code: 0, outputs: { run: expect.any(String) } })
  await runStep(jobOf(world), 'post', {}, main.state)
})

test('a post step that cannot reach the server says so, and does not fail the job', async () => {
  const gone = await startKeylessWorld({ preset: 'github', entry: ENTRY })
  const inputs = { server: gone.url, heartbeat: '1s' }
  const main = await runStep(jobOf(gone), 'main', inputs)
  await gone.close()
  const post = await runStep(jobOf(gone), 'post', inputs, main.state)
  expect(post.code).toBe(0)
  expect(post.commands).toMatchObject([
    { name: 'warning', data: expect.stringContaining('could not be ended') },
  ])
  await eventually(async () => expect(beaters(main)).toEqual([]))
})

test('a post step whose session is gone does nothing', async () => {
  for (const state of [{}, { directory: join(directory, 'absent') }])
    expect(await runStep(jobOf(world), 'post', {}, state)).toMatchObject({ code: 0, stdout: '', stderr: '' })
})

test('the heartbeats end with the runner, and the credentials after them', async () => {
  const script = join(directory, 'Runner.Worker')
  // Stays after the step, as the runner does until the job is over.
  await writeFile(
    script,
    '"$@"; code=$?; echo "$$" > "$HELD"; exec <&- >&- 2>&-; sleep 600 & echo $! >> "$HELD"; wait\n',
  )
  const held = join(directory, 'held')
  const job = jobOf(world)
  const step = runStep({ ...job, env: { ...job.env, HELD: held }, by: ['sh', script] }, 'main', {
    server: world.url,
    env: 'API_TOKEN=demo',
    heartbeat: '1s',
  })
  const pids = await eventually(async () => {
    const found = readFileSync(held, 'utf8').trim().split('\n').map(Number)
    expect(found).toHaveLength(2)
    return found
  })
  const [run] = (await world.app.admin('GET', '/v1/admin/runs?state=running')).body
  expect(run).toMatchObject({ credentials: { live: 1 } })
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  const { state } = await step
  await eventually(async () => expect(beaters({ state })).toEqual([]))
  await eventually(async () => {
    const { body } = await world.app.admin('GET', `/v1/admin/runs/${run.id}`)
    expect(body).toMatchObject({ state: 'ended', reason: 'missed_heartbeat', credentials: { live: 0 } })
  })
})
