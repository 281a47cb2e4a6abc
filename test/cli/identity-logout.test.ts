import { describe, expect, test } from 'vitest'
import { useJobs } from './identity-support.ts'
import { runCli } from './support.ts'

const jobs = useJobs()

describe('status', () => {
  test('shows the source', async () => {
    const { server, env } = await jobs.startJob()
    const { stdout } = await runCli(['status'], { env })
    expect(stdout).toMatch(new RegExp(`Login: +identity, by github, for ${server.url}\n`))
    expect(stdout).not.toMatch(/Profile/)
    expect(JSON.parse((await runCli(['status', '--json'], { env })).stdout)).toMatchObject({
      profile: null,
      login: 'identity',
      login_from: 'identity',
      identity: { source: 'github', audience: server.url },
    })
  })
})

describe('logout', () => {
  const ends = ({
    got,
  }: {
    got: readonly { method: string; path: string; authorization: string | undefined }[]
  }) => got.filter(({ method, path }) => method === 'DELETE' && path.startsWith('/v1/'))

  test('ends the login at the server, and forgets it', async () => {
    const { server, env } = await jobs.startJob()
    await runCli(['login', '--identity', 'github'], { env })
    const { code, stderr, stdout } = await runCli(['logout'], { env })
    expect({ code, stderr, stdout }).toEqual({
      code: 0,
      stdout: '',
      stderr: `Removed the login by GitHub Actions at ${server.url}.\n`,
    })
    expect(ends(server)).toMatchObject([
      { path: '/v1/login', authorization: expect.stringMatching(/^Bearer access-\d+$/) },
    ])
    expect(await jobs.kept()).toEqual([])
    // A second one gets no token to end it.
    expect(await runCli(['logout'], { env })).toMatchObject({ code: 4 })
    expect(server.polls()).toBe(1)
  })

  test('is for the login of this job alone', async () => {
    const { server, env } = await jobs.startJob()
    await runCli(['get', 'demo'], { env })
    const other = { ...env, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'another' }
    expect(await runCli(['logout'], { env: other })).toMatchObject({ code: 4 })
    expect(ends(server)).toEqual([])
    expect(await jobs.kept()).toHaveLength(1)
  })

  test('one that has ended is removed', async () => {
    const { server, env } = await jobs.startJob({
      'DELETE /v1/login': () => [401, { error: { code: 'unauthorized', message: 'No.' } }],
    })
    await runCli(['get', 'demo'], { env })
    expect(JSON.parse((await runCli(['logout', '--json'], { env })).stdout)).toEqual({
      profile: null,
      server: server.url,
      deleted_agent: false,
      login_ended: true,
    })
    await runCli(['get', 'demo'], { env })
    // Its time is over: there is nothing to end.
    expect(await runCli(['logout'], { env, ahead: 700_000 })).toMatchObject({ code: 0 })
    expect(ends(server)).toHaveLength(1)
    expect(await jobs.kept()).toEqual([])
  })

  test('without the server it is removed here, and that is said', async () => {
    const { server, env } = await jobs.startJob({ 'DELETE /v1/login': () => undefined })
    await runCli(['get', 'demo'], { env })
    await server.close()
    const { code, stderr } = await runCli(['logout'], { env })
    expect(code).toBe(0)
    expect(stderr).toMatch(/was removed here, and is valid at the server until it expires in/)
    expect(await jobs.kept()).toEqual([])
  })

  test('a server that is silent is waited for ten seconds', async () => {
    const { env } = await jobs.startJob({ 'DELETE /v1/login': () => 'silence' })
    await runCli(['get', 'demo'], { env })
    const began = performance.now()
    const { code, stderr } = await runCli(['logout'], { env })
    expect(performance.now() - began).toBeGreaterThan(9_900)
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /^The server did not answer in time\. The login was removed here, and is valid at the/,
    )
    expect(await jobs.kept()).toEqual([])
  })

  test('--delete-agent deletes the agent', async () => {
    const { server, env } = await jobs.startJob()
    await runCli(['get', 'demo'], { env })
    expect(await runCli(['logout', '--delete-agent', '--yes'], { env })).toMatchObject({ code: 0 })
    expect(ends(server).map(({ path }) => path)).toContain('/v1/self')
  })
})

test('completion offers the sources', async () => {
  const { env } = await jobs.startJob()
  const { stdout } = await runCli(['__complete', 'login', '--identity', 'g'], { env })
  expect(stdout.split('\n').map((line) => line.split('\t')[0])).toEqual(
    expect.arrayContaining(['github', 'gitlab', 'gcp']),
  )
})
