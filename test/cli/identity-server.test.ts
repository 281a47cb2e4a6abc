import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  equal,
  inline,
  newSigner,
  platform,
  presetIdentity,
  signPreset,
  times,
} from '../support/identity-tokens.ts'
import { entry, ISSUER, signer, template } from '../support/keyless.ts'
import { startLookAlike, useJobs } from './identity-support.ts'
import { runCli, startWorld, type World } from './support.ts'

const PLATFORM = 'https://agents.example'
const jobs = useJobs()
const spiffeSigner = newSigner('ES256')

let world: World
beforeAll(async () => {
  world = await startWorld()
  const audience = world.url
  world.app.core.identities.setTrusted({
    identities: [
      entry('runs', { audience, agent: template('ci-{run_id}'), subject: equal('job'), scopes: ['demo:*'] }),
      entry('other', { audience: 'mayfly-production', scopes: ['demo:*'] }),
      presetIdentity('spiffe', spiffeSigner, {
        audience,
        agent: template('workload'),
        scopes: ['demo:*'],
        once: false,
      }),
    ],
    platforms: [platform('agents', { issuer: PLATFORM, audience, keys: inline(signer) })],
  })
})
afterAll(() => world.close())

/** A token of a job, as its platform signs it when it is asked. */
const sign = (aud: string | null, claims: object = {}) =>
  signer.sign({ iss: ISSUER, aud, sub: 'job', jti: randomUUID(), ...times(Date.now()), ...claims })

/** The environment of a job whose tokens have these claims. */
async function newJob(claims: object): Promise<Record<string, string>> {
  const source = await startLookAlike(({ query }) => ({
    body: JSON.stringify({ value: sign(query.get('audience'), claims) }),
  }))
  jobs.closing.push(source.close)
  return {
    ...jobs.bareEnv(),
    MAYFLY_SERVER: world.url,
    ACTIONS_ID_TOKEN_REQUEST_URL: source.url,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: randomUUID(),
  }
}

const cli = (argv: readonly string[], env: Record<string, string>) => runCli(argv, { env })
const agents = async () =>
  ((await world.app.admin('GET', '/v1/admin/agents?limit=1000')).body as { name: string }[]).map(
    ({ name }) => name,
  )
/** What the audit has of refusals; it is written beside the answer. */
const reasons = async () =>
  (
    (await world.app.admin('GET', '/v1/admin/audit?action=token.refused&limit=100')).body as {
      details: { reason: string }
    }[]
  ).map(({ details }) => details.reason)

let runId = 0
beforeEach(() => {
  runId += 1
})

describe('at a real server', () => {
  test('a job gets a credential, and leaves nothing when it logs out', async () => {
    const env = await newJob({ run_id: `${runId}` })
    const issued = await cli(['get', 'demo', '-o', 'field=id'], env)
    expect(issued).toMatchObject({ code: 0, stderr: '' })
    const status = JSON.parse((await cli(['status', '--json'], env)).stdout)
    expect(status).toMatchObject({ name: `ci-${runId}`, login: 'identity', scopes: ['demo:*'] })
    expect(await cli(['credentials', 'ls'], env)).toMatchObject({ code: 0 })
    expect(await cli(['logout'], env)).toMatchObject({ code: 0 })
    expect(await agents()).not.toContain(`ci-${runId}`)
    const credential = await world.app.admin('GET', `/api/v1/credentials/${issued.stdout.trim()}`)
    expect(credential.body).toMatchObject({ status: 'revoked' })
  })

  test('run revokes at its end what it got', async () => {
    const env = await newJob({ run_id: `${runId}` })
    const argv = ['run', '--env', 'X=demo', '--', 'sh', '-c', 'test -n "$X"']
    expect(await cli(argv, env)).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse((await cli(['status', '--json'], env)).stdout).active_credentials).toEqual([])
  })

  test('two jobs of one user side by side are two agents', async () => {
    const [one, two] = await Promise.all([newJob({ run_id: `${runId}-a` }), newJob({ run_id: `${runId}-b` })])
    const names = async () =>
      Promise.all(
        [one, two].map(async (env) => JSON.parse((await cli(['status', '--json'], env)).stdout).name),
      )
    expect(await names()).toEqual([`ci-${runId}-a`, `ci-${runId}-b`])
    await cli(['logout'], one)
    expect(await agents()).toEqual(expect.arrayContaining([`ci-${runId}-b`]))
    expect(await names()).toEqual([`ci-${runId}-a`, `ci-${runId}-b`])
  })

  test('the agent stays while another login uses it', async () => {
    const [one, two] = await Promise.all([newJob({ run_id: `${runId}` }), newJob({ run_id: `${runId}` })])
    for (const env of [one, two]) await cli(['status'], env)
    await cli(['logout'], one)
    expect(await agents()).toContain(`ci-${runId}`)
    await cli(['logout'], two)
    expect(await agents()).not.toContain(`ci-${runId}`)
  })

  test('commands that start together share the one token that the job has', async () => {
    const env = {
      ...jobs.bareEnv(),
      MAYFLY_SERVER: world.url,
      MAYFLY_ID_TOKEN: sign(world.url, { run_id: `${runId}` }),
    }
    const ends = await Promise.all(Array.from({ length: 5 }, () => cli(['get', 'demo'], env)))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0])
    // It is used up, so another login needs another one.
    const { code, stderr } = await cli(['login', '--identity', 'gitlab'], env)
    expect(code).toBe(4)
    expect(stderr).toMatch(
      /refused the token of GitLab CI for the audience http\S+\. No entry of .+ accepts this token\. An administrator/,
    )
    await expect.poll(reasons).toContain('repeated')
  })

  test('what the server refuses, and the reason that only its audit has', async () => {
    const env = await newJob({ run_id: `${runId}`, sub: 'another job' })
    const { code, stderr } = await cli(['get', 'demo'], env)
    expect(code).toBe(4)
    expect(stderr).not.toMatch(/subject/)
    await expect.poll(reasons).toContain('subject')
  })

  test('an audience of its own', async () => {
    const env = await newJob({ run_id: `${runId}` })
    const argv = ['login', '--identity', 'github', '--audience', 'mayfly-production', '--json']
    expect(JSON.parse((await cli(argv, env)).stdout).agent.name).toBe('other')
  })

  test('a token of SPIFFE, which kubelet and SPIRE hand out repeatedly', async () => {
    const token = signPreset('spiffe', spiffeSigner, { now: Date.now(), claims: { aud: [world.url] } })
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: world.url, MAYFLY_ID_TOKEN: token }
    for (const argv of [['get', 'demo'], ['login', '--identity', 'gitlab'], ['logout']])
      expect(await cli(argv, env)).toMatchObject({ code: 0 })
  })

  test('an agent of a platform enters without rights, and has them once an administrator gives them', async () => {
    const env = await newJob({ iss: PLATFORM, sub: `agent-${runId}` })
    expect(await cli(['get', 'demo'], env)).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/Your scopes do not include this backend/),
    })
    const pending = await world.app.admin('GET', '/v1/admin/pending')
    const [{ id }] = pending.body as [{ id: string }]
    const approved = await world.app.admin('POST', `/v1/admin/pending/${id}/approve`, { scopes: ['demo:*'] })
    expect(approved.status).toBe(200)
    // The access token that is kept lacks them: it takes another login.
    expect(await cli(['get', 'demo'], env)).toMatchObject({ code: 0 })
  })

  test('a helper that a tool calls later finds the identity of its own job', async () => {
    const env = await newJob({ run_id: `${runId}` })
    const { code, stdout } = await cli(['helper', 'kubectl', '--backend', 'demo', '--print'], env)
    expect(code).toBe(0)
    expect(stdout).toContain(world.url)
    expect(stdout).not.toContain('--profile')
  })

  test('doctor and config show say which identity it is', async () => {
    const env = await newJob({ run_id: `${runId}` })
    expect((await cli(['config', 'show', '--origin'], env)).stdout).toMatch(/login +identity +GitHub Actions/)
    expect((await cli(['doctor'], env)).stdout).toMatch(`agent ci-${runId}, by GitHub Actions`)
  })
})
