import { describe, expect, test } from 'vitest'
import type { Routes } from './false-server.ts'
import {
  audienceOf,
  CREDENTIAL,
  granting,
  startLookAlike,
  startServer,
  tokenFor,
  useJobs,
} from './identity-support.ts'
import { runCli } from './support.ts'

const jobs = useJobs()

describe('whom the token is for', () => {
  const HOSTILE: Routes = {
    'GET /.well-known/openid-configuration': () => [
      200,
      { issuer: 'https://mayfly.example.com', token_endpoint: 'https://mayfly.example.com/oauth/token' },
    ],
  }

  test('a server that says it is another one gets a token for its own address alone', async () => {
    const { server, actions, env } = await jobs.startJob(HOSTILE)
    for (const argv of [['get', 'demo'], ['login', '--identity', 'auto'], ['status'], ['logout']])
      expect(await runCli(argv, { env })).toMatchObject({ code: 0 })
    expect(server.shown().map(audienceOf)).toEqual([server.url, server.url])
    expect(actions.got.map(({ query }) => query.get('audience'))).toEqual([server.url, server.url])
  })

  test('nor does a refusal that names another audience change it', async () => {
    const { server, env } = await jobs.startJob({
      ...HOSTILE,
      'POST /oauth/token': () => [
        400,
        { error: 'invalid_grant', error_description: 'Use the audience https://mayfly.example.com.' },
      ],
    })
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 4 })
    expect(server.shown().map(audienceOf)).toEqual([server.url])
  })

  test.each([
    ['another', 'https://mayfly.example.com'],
    ['two', ['https://mayfly.example.com', 'SERVER']],
    ['two, ours first', ['SERVER', 'https://mayfly.example.com']],
    ['none', undefined],
    ['no text', 42],
    ['a part', 'SERVE'],
  ])('a token with %s as audience is not sent', async (_, aud) => {
    const { server } = await jobs.startJob()
    const own = JSON.parse(JSON.stringify({ aud })?.replaceAll('SERVER', server.url)).aud
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_ID_TOKEN: tokenFor(own) }
    const { code, stderr } = await runCli(['get', 'demo'], { env })
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(
        /^mayfly: The token of GitLab CI is for .*; it was not sent\. Have it made/,
      ),
    })
    expect(server.got).toEqual([])
    expect(stderr).not.toContain('eyJ')
  })

  test.each(['SERVER', 'SERVER/', ['SERVER']])('a token for %s is sent', async (aud) => {
    const { server } = await jobs.startJob()
    const own = JSON.parse(JSON.stringify(aud).replaceAll('SERVER', server.url))
    const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, MAYFLY_ID_TOKEN: tokenFor(own) }
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
  })

  test('a source that answers with a token for another audience is found out', async () => {
    const [server, source] = await Promise.all([
      startServer(),
      startLookAlike(() => ({ body: JSON.stringify({ value: tokenFor('https://mayfly.example.com') }) })),
    ])
    jobs.closing.push(server.close, source.close)
    const env = {
      ...jobs.bareEnv(),
      MAYFLY_SERVER: server.url,
      ACTIONS_ID_TOKEN_REQUEST_URL: source.url,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'x',
    }
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 4 })
    expect(server.got).toEqual([])
  })

  test('--audience names another, which later commands of the job keep to', async () => {
    const { server, env } = await jobs.startJob()
    const argv = ['login', '--identity', 'github', '--audience', 'mayfly-production']
    expect(await runCli(argv, { env })).toMatchObject({ code: 0 })
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    await runCli(['get', 'demo'], { env, ahead: 700_000 })
    expect(server.shown().map(audienceOf)).toEqual(['mayfly-production', 'mayfly-production'])
    // Another server is another login, and that of another job is, too.
    const other = await startServer()
    jobs.closing.push(other.close)
    await runCli(['get', 'demo', '--server', other.url], { env })
    expect(other.shown().map(audienceOf)).toEqual([other.url])
    await runCli(['get', 'demo'], { env: { ...env, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'another' } })
    expect(server.shown().map(audienceOf).at(-1)).toBe(server.url)
  })

  test('it is kept when the server refuses the access token and a new login fails', async () => {
    let isUp = true
    const { server, env } = await jobs.startJob({
      'POST /oauth/token': () => (isUp ? [200, granting()] : [400, { error: 'invalid_grant' }]),
      'POST /api/v1/credentials': () =>
        isUp ? [201, CREDENTIAL] : [401, { error: { code: 'unauthorized', message: 'No.' } }],
    })
    await runCli(['login', '--identity', 'github', '--audience', 'a'], { env })
    isUp = false
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 4 })
    isUp = true
    expect(await runCli(['get', 'demo'], { env })).toMatchObject({ code: 0 })
    expect(new Set(server.shown().map(audienceOf))).toEqual(new Set(['a']))
  })

  test.each([
    [['--audience', 'a'], /--audience needs --identity/],
    [['--identity', 'auto', '--audience', 'a b'], /must be text without white space/],
    [['--identity', 'auto', '--audience', ''], /must be text without white space/],
    [['--identity', 'jenkins'], /no identity "jenkins"\. Use auto, github, .* or file:PATH/],
    [['--identity', 'file:'], /no identity "file:"/],
    [['--identity', 'auto', '--browser'], /excludes the options of other logins/],
    [['--identity', 'auto', '--token-file', 'x'], /excludes the options of other logins/],
    [['--identity', 'auto', '--server', 'unix:/run/mayfly.sock'], /Name the server .* or the audience/],
  ])('%j is wrong usage', async (argv, message) => {
    const { server, actions, env } = await jobs.startJob()
    const { code, stderr } = await runCli(['login', ...argv], { env })
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect([...server.got, ...actions.got]).toEqual([])
  })
})
