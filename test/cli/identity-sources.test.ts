import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Asked, type LookAlikeReply, startLookAlike, tokenFor, useJobs } from './identity-support.ts'
import { runCli } from './support.ts'

const jobs = useJobs()

type LookAlike = Awaited<ReturnType<typeof startLookAlike>>

const { startSource: start } = jobs

const secondsOf = async <T>(work: Promise<T>) => {
  const begin = performance.now()
  const result = await work
  return { result, seconds: (performance.now() - begin) / 1_000 }
}

const ACTIONS = ({ url }: LookAlike, more: Record<string, string> = {}) => ({
  ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/a/b?api-version=2.0&x=%2F%20`,
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token',
  ...more,
})
const signs = (asked: Asked) => ({ body: JSON.stringify({ value: tokenFor(asked.query.get('audience')) }) })

describe.each([
  ['github', {}, 'GitHub Actions'],
  ['forgejo', { FORGEJO_ACTIONS: 'true', GITHUB_ACTIONS: 'true' }, 'Forgejo Actions'],
])('%s', (name, marks, title) => {
  test('asks as documented', async () => {
    const { server, source, logIn } = await start(signs)
    for (const argv of [[name], ['auto']]) {
      const { code, stderr } = await logIn(ACTIONS(source, marks), argv)
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`by ${title}.`) })
    }
    const [asked] = source.got
    expect(asked).toMatchObject({ method: 'GET', path: '/a/b' })
    expect(Object.fromEntries(asked?.query ?? [])).toEqual({
      'api-version': '2.0',
      x: '/ ',
      audience: server.url,
    })
    expect(asked?.headers.authorization).toBe('Bearer request-token')
  })

  test('asks again while it is busy', async () => {
    let asked = 0
    const { source, logIn } = await start((one) => (asked++ < 2 ? { status: 503 } : signs(one)))
    expect(await logIn(ACTIONS(source, marks), [name])).toMatchObject({ code: 0 })
    expect(asked).toBe(3)
  })

  test('says what the job lacks', async () => {
    const { server, logIn } = await start(signs)
    const { code, stderr } = await logIn({ ...marks, GITHUB_ACTIONS: 'true' }, [name])
    expect({ code, stderr }).toEqual({
      code: 4,
      stderr: expect.stringMatching(
        /gave no token: it needs a job with `(permissions: id-token: write|enable-openid-connect: true)`/,
      ),
    })
    expect(server.got).toEqual([])
  })
})

/** What a source must not have this command believe, follow or hold. */
const HOSTILE: readonly (readonly [string, () => LookAlikeReply | undefined, RegExp])[] = [
  ['nothing', () => undefined, /the connection was closed/],
  ['no JSON', () => ({ body: '<html>' }), /holds none|not a signed JWT/],
  ['null', () => ({ body: 'null' }), /holds none|not a signed JWT/],
  ['a list', () => ({ body: '[]' }), /holds none|not a signed JWT/],
  ['another type', () => ({ body: '{"value":{"a":1},"access_token":7}' }), /holds none|not a signed JWT/],
  [
    'no JWT',
    () => ({ body: '{"value":"ckr_1","access_token":"ckr_1"}' }),
    /is not a signed JWT of at most 16 KiB/,
  ],
  [
    'a JWT without a signature',
    () => {
      const value = tokenFor('http://x').replace(/[^.]+$/, '')
      return { body: JSON.stringify({ value, access_token: value }) }
    },
    /is not a signed JWT/,
  ],
  [
    'a JWT of 20 KiB',
    () => {
      const value = tokenFor('http://x', { long: 'x'.repeat(15_000) })
      return { body: JSON.stringify({ value, access_token: value }) }
    },
    /is not a signed JWT of at most 16 KiB/,
  ],
  ['a megabyte', () => ({ body: 'x'.repeat(1024 * 1024) }), /larger than 64 KiB/],
  ['a refusal', () => ({ status: 403, body: 'ckr_secret' }), /answered with status 403/],
  ['an error', () => ({ status: 500 }), /answered with status 500/],
]
const HTTP_SOURCES: readonly (readonly [string, (source: LookAlike) => Record<string, string>])[] = [
  ['github', (source) => ACTIONS(source)],
  ['gcp', ({ host }) => ({ GCE_METADATA_HOST: host })],
  ['azure', ({ url }) => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: url })],
]
const GOOGLE = { 'metadata-flavor': 'Google' }

describe.each(HTTP_SOURCES)('a hostile answer of %s', (name, envOf) => {
  test.each(HOSTILE)('%s is no token', async (_, answer, words) => {
    const { server, source, logIn } = await start(() => {
      const reply = answer()
      return reply && { ...reply, headers: { ...GOOGLE, ...reply.headers } }
    })
    const { code, stderr } = await logIn(envOf(source), [name])
    expect(code).toBe(4)
    expect(stderr).toMatch(words)
    expect(stderr).not.toContain('ckr_')
    expect(stderr.split('\n')).toHaveLength(2)
    expect(server.got).toEqual([])
  })

  test('a redirect is not followed, and what was sent goes nowhere else', async () => {
    const elsewhere = await startLookAlike(() => ({
      headers: GOOGLE,
      body: JSON.stringify({ value: tokenFor('x'), access_token: tokenFor('x') }),
    }))
    jobs.closing.push(elsewhere.close)
    for (const status of [301, 302, 307]) {
      const { source, logIn } = await start(() => ({
        status,
        headers: { ...GOOGLE, location: `${elsewhere.url}/` },
      }))
      const { code, stderr } = await logIn(envOf(source), [name])
      expect({ code, stderr }).toEqual({
        code: 4,
        stderr: expect.stringMatching(new RegExp(`answered with status ${status}`)),
      })
    }
    expect(elsewhere.got).toEqual([])
  })

  test('an address beyond this network is not asked without TLS', async () => {
    const { server, logIn } = await start(() => ({}))
    const far = 'http://metadata.example.com'
    const source = { url: far, host: 'metadata.example.com' } as LookAlike
    expect(await logIn(envOf(source), [name])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/would travel from http:\/\/metadata\.example\.com unencrypted/),
    })
    expect(server.got).toEqual([])
  })
})

test('one that is silent is not waited for', async () => {
  const { source, logIn } = await start(() => 'silence')
  const { result, seconds } = await secondsOf(logIn({ GCE_METADATA_HOST: source.host }, ['gcp']))
  expect(result).toMatchObject({ code: 4, stderr: expect.stringMatching(/did not answer in time/) })
  expect(seconds).toBeGreaterThan(4)
  // It never answers.
  expect(seconds).toBeLessThan(30)
})

test('a request token with a line break is not sent, nor shown', async () => {
  const { source, logIn } = await start(signs)
  const env = ACTIONS(source, { ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'a\r\nx-evil: 1' })
  const { code, stderr } = await logIn(env, ['github'])
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(/is damaged/) })
  expect(stderr).not.toContain('x-evil')
  expect(source.got).toEqual([])
})

describe('gcp', () => {
  test('asks as documented, and takes only what Google says', async () => {
    const { server, source, logIn } = await start(({ query }) => ({
      headers: GOOGLE,
      body: `${tokenFor(query.get('audience'))}\n`,
    }))
    expect(await logIn({ GCE_METADATA_HOST: source.host }, ['gcp'])).toMatchObject({ code: 0 })
    const [asked] = source.got
    expect(asked).toMatchObject({
      method: 'GET',
      path: '/computeMetadata/v1/instance/service-accounts/default/identity',
    })
    expect(Object.fromEntries(asked?.query ?? [])).toEqual({ audience: server.url, format: 'full' })
    expect(asked?.headers['metadata-flavor']).toBe('Google')
  })

  test('what answers without the header of Google is not its metadata server', async () => {
    const { server, source, logIn } = await start(({ query }) => ({ body: tokenFor(query.get('audience')) }))
    expect(await logIn({ GCE_METADATA_HOST: source.host }, ['gcp'])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/is not its metadata server/),
    })
    expect(server.got).toEqual([])
  })
})

test('azure: asks as documented', async () => {
  const { source, logIn } = await start(({ query }) => ({
    body: JSON.stringify({ access_token: tokenFor(query.get('resource')), token_type: 'Bearer' }),
  }))
  const env = { AZURE_POD_IDENTITY_AUTHORITY_HOST: `${source.url}/`, AZURE_CLIENT_ID: 'client-1' }
  const argv = ['azure', '--audience', 'api://mayfly']
  expect(await logIn(env, argv)).toMatchObject({ code: 0 })
  const [asked] = source.got
  expect(asked).toMatchObject({ method: 'GET', path: '/metadata/identity/oauth2/token' })
  expect(Object.fromEntries(asked?.query ?? [])).toEqual({
    'api-version': '2018-02-01',
    resource: 'api://mayfly',
    client_id: 'client-1',
  })
  expect(asked?.headers['metadata']).toBe('true')
})

describe('auto', () => {
  test('asks the metadata services together, and takes the one that answers', async () => {
    const { source, logIn } = await start(({ method, path, query }) => {
      if (method === 'PUT') return { body: 'x'.repeat(56) }
      return path === '/' ? 'silence' : { body: tokenFor(query.get('audience')) }
    })
    const env = {
      AWS_EC2_METADATA_SERVICE_ENDPOINT: source.url,
      AWS_ENDPOINT_URL_STS: source.url,
      AWS_REGION: 'eu-central-1',
    }
    const { result, seconds } = await secondsOf(logIn(env, ['auto']))
    // It answers as AWS does, and then has no role.
    expect(result).toMatchObject({ code: 4, stderr: expect.stringMatching(/^mayfly: AWS gave no token/) })
    expect(seconds).toBeLessThan(5)
  })

  test('get asks no metadata service, and keeps to one that a person has named', async () => {
    const { server, source, env, logIn } = await start(({ query }) => ({
      headers: GOOGLE,
      body: tokenFor(query.get('audience')),
    }))
    const machine = { GCE_METADATA_HOST: source.host }
    const get = () => runCli(['get', 'demo'], { env: { ...env, ...machine } })
    expect(await get()).toMatchObject({ code: 4, stderr: expect.stringMatching(/You are not logged in/) })
    expect(source.got).toEqual([])
    expect(await logIn(machine, ['gcp', '--audience', 'a'])).toMatchObject({ code: 0 })
    expect(await get()).toMatchObject({ code: 0 })
    expect([server.polls(), source.got.length]).toEqual([1, 1])
  })

  test('prefers what the job says to what the pod says', async () => {
    const { server, source, env } = await start(signs)
    await writeFile(join(jobs.home(), 'token'), tokenFor(server.url))
    const more = { ...ACTIONS(source), MAYFLY_IDENTITY_TOKEN_FILE: join(jobs.home(), 'token') }
    const { stdout } = await runCli(['status', '--json'], { env: { ...env, ...more } })
    expect(JSON.parse(stdout).identity.source).toBe('github')
  })
})

describe('a file', () => {
  const logIn = async (path: string) => {
    const { server, env } = await start(() => ({}))
    const wish = { ...env, MAYFLY_IDENTITY_TOKEN_FILE: path }
    return { server, ...(await runCli(['get', 'demo'], { env: wish })) }
  }

  test.each([
    ['that is not there', () => 'none', /none: no such file or directory/],
    ['that is a directory', () => '.', /is not a file/],
    ['that is empty', () => writeFile(join(jobs.home(), 'f'), '').then(() => 'f'), /is not a signed JWT/],
    [
      'of a megabyte',
      () => writeFile(join(jobs.home(), 'f'), 'x'.repeat(1024 * 1024)).then(() => 'f'),
      /has more than 16 KiB/,
    ],
    [
      'with a secret of ours',
      () => writeFile(join(jobs.home(), 'f'), `ckr_${'0'.repeat(48)}`).then(() => 'f'),
      /is not a signed JWT/,
    ],
  ])('%s is no token', async (_, make, words) => {
    const { server, code, stderr } = await logIn(await make())
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(words) })
    expect(stderr).not.toContain('ckr_')
    expect(server.got).toEqual([])
  })

  test('that is a pipe is not waited for', async () => {
    execFileSync('mkfifo', [join(jobs.home(), 'pipe')])
    expect(await logIn('pipe')).toMatchObject({ code: 4, stderr: expect.stringMatching(/is not a file/) })
  })
})
