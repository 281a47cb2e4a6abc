import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CREDENTIAL, granting, tokenFor, useJobs } from './identity-support.ts'
import { runCli } from './support.ts'

const jobs = useJobs()

describe('without another login', () => {
  test('get logs in by itself, and later commands of the job share the access token', async () => {
    const { server, env } = await jobs.startJob()
    expect(await runCli(['get', 'demo'], { env })).toEqual({ code: 0, stdout: 'the-secret\n', stderr: '' })
    const [form] = server.got.flatMap(({ path, form }) => (path === '/oauth/token' ? [form] : []))
    expect(Object.fromEntries(form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: expect.stringMatching(/^eyJ/),
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    })
    expect(server.got.find(({ path }) => path === '/oauth/token')?.authorization).toBeUndefined()
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    expect(await runCli(['status'], { env })).toMatchObject({ code: 0 })
    expect(server.polls()).toBe(1)
    const [name = ''] = await jobs.kept()
    const file = join(jobs.home(), 'cache/mayfly/identities', name)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    // The token of the job, and what asks for it, are in no file.
    const text = await readFile(file, 'utf8')
    expect(text).not.toContain(server.shown()[0])
    expect(text).not.toContain('request-token-of-this-job')
    expect(await readdir(jobs.home())).toEqual(['cache'])
  })

  test('run does, too', async () => {
    const { server, env } = await jobs.startJob()
    const argv = ['run', '--env', 'X=demo', '--', 'sh', '-c', 'test "$X" = the-secret']
    expect(await runCli(argv, { env })).toMatchObject({ code: 0 })
    expect(server.polls()).toBe(1)
    expect(server.got.map(({ method, path }) => `${method} ${path}`)).toContain(
      `DELETE /api/v1/credentials/${CREDENTIAL.id}`,
    )
  })

  test('the command that run starts gets no variable of ours to log in with', async () => {
    const { server } = await jobs.startJob()
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_ID_TOKEN: tokenFor(server.url) }
    const argv = ['run', '--env', 'X=demo', '--', 'sh', '-c', 'test -z "$MAYFLY_ID_TOKEN"']
    expect(await runCli(argv, { env })).toMatchObject({ code: 0 })
  })

  test('a new access token needs a new token of the source', async () => {
    const { server, env } = await jobs.startJob()
    await runCli(['get', 'demo'], { env })
    expect(await runCli(['get', 'demo'], { env, ahead: 590_000 })).toMatchObject({ code: 0 })
    const [first, second] = server.shown()
    expect(server.shown()).toHaveLength(2)
    expect(first).not.toBe(second)
  })

  test('commands that start together share one login, so that a token that is good once does', async () => {
    const { server } = await jobs.startJob()
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_ID_TOKEN: tokenFor(server.url) }
    const ends = await Promise.all(Array.from({ length: 6 }, () => runCli(['get', 'demo'], { env })))
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0])
    expect(server.polls()).toBe(1)
  })

  test('without a place for a cache, one command still logs in once', async () => {
    const { server } = await jobs.startJob()
    const env = {
      ...jobs.bareEnv(),
      XDG_CACHE_HOME: '/dev/null/none',
      MAYFLY_SERVER: server.url,
      MAYFLY_ID_TOKEN: tokenFor(server.url),
    }
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    expect(server.polls()).toBe(1)
    expect(await runCli(['login', '--identity', 'gitlab'], { env })).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/cannot be kept here, so each command logs in by itself/),
    })
  })

  test('another job of the same user does not use it', async () => {
    const { server, env } = await jobs.startJob()
    await runCli(['get', 'demo'], { env })
    const other = { ...env, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token-of-another-job' }
    await runCli(['get', 'demo'], { env: other })
    expect(server.polls()).toBe(2)
    const bearers = server.got.flatMap(({ path, authorization }) =>
      path === '/api/v1/credentials' ? [authorization] : [],
    )
    expect(new Set(bearers).size).toBe(2)
    expect(await jobs.kept()).toHaveLength(2)
  })

  test('a renewed token of the same workload is the same login', async () => {
    const { server } = await jobs.startJob()
    const file = join(jobs.home(), 'token')
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_IDENTITY_TOKEN_FILE: file }
    for (const sub of ['pod-a', 'pod-a', 'pod-b']) {
      await writeFile(file, `${tokenFor([server.url], { sub })}\n`)
      expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    }
    expect(server.polls()).toBe(2)
  })

  test('what ended jobs left is removed after a week', async () => {
    const { env } = await jobs.startJob()
    const directory = join(jobs.home(), 'cache/mayfly/identities')
    await mkdir(directory, { recursive: true })
    for (const name of ['old', 'recent']) await writeFile(join(directory, `${name}.json`), '{}')
    const days = (count: number) => new Date(Date.now() - count * 86_400_000)
    await utimes(join(directory, 'old.json'), days(8), days(8))
    await utimes(join(directory, 'recent.json'), days(6), days(6))
    await runCli(['get', 'demo'], { env })
    expect(await jobs.kept()).toContain('recent.json')
    expect(await jobs.kept()).not.toContain('old.json')
  })

  test('nothing is asked without a server that somebody has named', async () => {
    const { actions, env } = await jobs.startJob()
    const { MAYFLY_SERVER: _, ...rest } = env
    expect(await runCli(['get', 'demo'], { env: rest })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/You are not logged in/),
    })
    expect(actions.got).toEqual([])
  })

  test('a profile that is named has its own login, or none', async () => {
    const { actions, env } = await jobs.startJob()
    for (const [argv, more] of [
      [['--profile', 'x'], {}],
      [[], { MAYFLY_PROFILE: 'x' }],
    ] as const) {
      const wish = { env: { ...env, ...more } }
      expect(await runCli(['get', 'demo', ...argv], wish)).toMatchObject({ code: 4 })
    }
    expect(await runCli(['login', '--identity', 'auto', '--profile', 'x'], { env })).toMatchObject({
      code: 2,
    })
    expect(actions.got).toEqual([])
  })

  test('nor does it take the place of a login that is gone', async () => {
    const { server, actions, env } = await jobs.startJob()
    await runCli(['login'], {
      env: { ...jobs.bareEnv(), MAYFLY_SERVER: server.url },
      stdin: `ckr_${'0'.repeat(48)}`,
    })
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    await rm(join(jobs.home(), 'config/mayfly/secrets'), { recursive: true })
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 4 })
    expect(actions.got).toEqual([])
  })

  test('a token of the environment comes first', async () => {
    const { actions, env } = await jobs.startJob()
    const { code } = await runCli(['get', 'demo'], { env: { ...env, MAYFLY_TOKEN: `ckr_${'0'.repeat(48)}` } })
    expect(code).toBe(0)
    expect(actions.got).toEqual([])
  })
})

describe('login --identity', () => {
  test('says who it is now, and where that is kept', async () => {
    const { server, env } = await jobs.startJob()
    const { code, stdout, stderr } = await runCli(['login', '--identity', 'auto'], { env })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr).toMatch(
      new RegExp(
        `^Logged in to ${server.url} as ci-42, by GitHub Actions\\. The access token is in \\S+\\.json, until in (10|9) min\\.\n$`,
      ),
    )
    const { stdout: json } = await runCli(['login', '--identity', 'github', '--json'], { env })
    expect(JSON.parse(json)).toEqual({
      server: server.url,
      agent: { id: expect.any(String), name: 'ci-42' },
      login: 'identity',
      identity: { source: 'github', audience: server.url },
      expires_at: expect.any(String),
      place: expect.stringMatching(/identities/),
    })
    expect(server.polls()).toBe(2)
    expect(await jobs.kept()).toHaveLength(1)
  })

  test('a file: later commands find it, as long as it is of the same workload', async () => {
    const { server } = await jobs.startJob()
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url }
    await writeFile(join(jobs.home(), 'my token'), tokenFor('aud-1', { sub: 'a' }))
    const argv = ['login', '--identity', 'file:my token', '--audience', 'aud-1']
    expect(await runCli(argv, { env })).toMatchObject({ code: 0 })
    expect(await runCli(['status', '--json'], { env, cwd: '/' })).toMatchObject({ code: 0 })
    expect(server.polls()).toBe(1)
    await writeFile(join(jobs.home(), 'my token'), tokenFor('aud-1', { sub: 'b' }))
    expect(await runCli(['status'], { env, cwd: '/' })).toMatchObject({ code: 4 })
  })

  test('the last one counts', async () => {
    const { server, env } = await jobs.startJob()
    await writeFile(join(jobs.home(), 'token'), tokenFor(server.url))
    await runCli(['login', '--identity', `file:${jobs.home()}/token`], { env })
    await runCli(['login', '--identity', 'github'], { env })
    const { stdout } = await runCli(['status', '--json'], { env })
    expect(JSON.parse(stdout).identity.source).toBe('github')
  })

  test('names what it looked for if nothing is here', async () => {
    const { server } = await jobs.startJob()
    // Nothing listens there: no metadata service of a cloud.
    const env = {
      ...jobs.bareEnv(),
      MAYFLY_SERVER: server.url,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    }
    const { code, stderr } = await runCli(['login', '--identity', 'auto'], { env })
    expect(code).toBe(4)
    for (const name of [
      'GitHub Actions (a job with `permissions: id-token: write`',
      'MAYFLY_ID_TOKEN',
      'MAYFLY_IDENTITY_TOKEN_FILE',
      'SPIFFE_ENDPOINT_SOCKET',
      '169.254.169.254',
    ])
      expect(stderr).toContain(name)
    expect(server.got).toEqual([])
  })

  test('says of a variable that it takes precedence', async () => {
    const { env } = await jobs.startJob()
    const { stderr } = await runCli(['login', '--identity', 'github'], { env: { ...env, MAYFLY_TOKEN: 'x' } })
    expect(stderr).toMatch(/MAYFLY_TOKEN is set and takes precedence over this login/)
  })

  test('a lifetime that a server has made up breaks nothing', async () => {
    for (const expires_in of [1e300, -1e300, 'x', null]) {
      const { env } = await jobs.startJob({ 'POST /oauth/token': () => [200, granting({ expires_in })] })
      expect(await runCli(['login', '--identity', 'auto'], { env })).toMatchObject({ code: 0 })
      expect(await runCli(['logout'], { env })).toMatchObject({ code: 0 })
    }
  })

  test('the server says who must act', async () => {
    const said = 'No entry of `identities` accepts this token. An administrator must add or change the entry.'
    const { server, env } = await jobs.startJob({
      'POST /oauth/token': () => [400, { error: 'invalid_grant', error_description: said }],
    })
    for (const argv of [
      ['get', 'demo'],
      ['login', '--identity', 'auto'],
    ]) {
      const { code, stderr } = await runCli(argv, { env })
      expect({ code, stderr }).toEqual({
        code: 4,
        stderr: `mayfly: ${server.url} refused the token of GitHub Actions for the audience ${server.url}. ${said}\n`,
      })
    }
    const { stderr } = await runCli(['get', 'demo', '--json'], { env })
    expect(JSON.parse(stderr).error.code).toBe('identity_refused')
  })

  test('an older server says that it knows no such grant', async () => {
    const { env } = await jobs.startJob({
      'POST /oauth/token': () => [400, { error: 'unsupported_grant_type', error_description: 'No.' }],
    })
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/does not take the identity of a workload/),
    })
  })

  test('a refused scope stays what the command says, and costs a used token no login', async () => {
    let asked = 0
    const { server } = await jobs.startJob({
      'POST /oauth/token': () => (asked++ === 0 ? [200, granting()] : [400, { error: 'invalid_grant' }]),
      'POST /api/v1/credentials': () => [
        403,
        { error: { code: 'scope_not_allowed', message: 'The agent lacks demo:write.' } },
      ],
    })
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_ID_TOKEN: tokenFor(server.url) }
    const { code, stderr } = await runCli(['get', 'demo'], { env })
    expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringMatching(/lacks demo:write/) })
    expect(await runCli(['status'], { env })).toMatchObject({ code: 0 })
  })
})
