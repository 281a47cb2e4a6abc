import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withDeadline } from '../../src/domain/abort.ts'
import { eventually } from '../support/app.ts'
import { openGate } from './run-support.ts'
import { expectNoSecret, runCli, spawnCli } from './support.ts'
import { AWS_FIELDS, activeOf, child, gone, startToolsWorld, type ToolsWorld } from './tools-support.ts'

const role = 'arn:aws:iam::123456789012:role/agent'
let world: ToolsWorld
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('cloud', { fields: AWS_FIELDS })
})
afterAll(() => world.close())

async function started(argv: readonly string[], env: Record<string, string> = {}) {
  const run = spawnCli(argv, { env: { ...world.env, ...env }, stdin: 'open' })
  const said = await run.said('\n', 'stdout')
  return { ...run, variables: JSON.parse(said) as Record<string, string> }
}

describe('aws serve', () => {
  const argv = ['aws', 'serve', '--backend', 'cloud', '--', ...child]
  type Started = Awaited<ReturnType<typeof started>>
  let run: Started
  let url: string
  let authorization: string
  beforeAll(async () => {
    run = await started(argv, {
      AWS_PROFILE: 'other',
      AWS_ACCESS_KEY_ID: 'AKIAOTHER',
      AWS_REGION: 'eu-west-1',
    })
    url = String(run.variables['AWS_CONTAINER_CREDENTIALS_FULL_URI'])
    authorization = String(run.variables['AWS_CONTAINER_AUTHORIZATION_TOKEN'])
  })

  test('gives the child a URL, the token for it, and no other source of credentials', async () => {
    expect(Object.keys(run.variables).sort()).toEqual([
      'AWS_CONTAINER_AUTHORIZATION_TOKEN',
      'AWS_CONTAINER_CREDENTIALS_FULL_URI',
      'AWS_REGION',
    ])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/credentials$/)
    expect(authorization).toMatch(/^[\w-]{43}$/)
  })

  test('gives the region of the backend, unless the user has one', async () => {
    await world.add('regional', { fields: { ...AWS_FIELDS, region: 'eu-north-1' } })
    const one = await started(['aws', 'serve', '--backend', 'regional', '--', ...child])
    expect(one.variables).toMatchObject({ AWS_REGION: 'eu-north-1', AWS_DEFAULT_REGION: 'eu-north-1' })
    one.child.stdin?.end()
    await one.ended
  })

  test('answers callers with the token, with the same credential each time', async () => {
    const ask = async () => {
      const reply = await fetch(url, { headers: { authorization } })
      expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
      return (await reply.json()) as Record<string, string>
    }
    const answer = await ask()
    expect(Object.keys(answer).sort()).toEqual(['AccessKeyId', 'Expiration', 'SecretAccessKey', 'Token'])
    expect(answer['Token']).toMatch(/^session==cred_/)
    expect(await ask()).toEqual(answer)
  })

  test.each([
    ['no token', {}, 'GET', '', 401],
    ['a wrong token', { authorization: 'x'.repeat(43) }, 'GET', '', 401],
    ['the token as a bearer', { authorization: 'Bearer TOKEN' }, 'GET', '', 401],
    ['a longer token', { authorization: 'TOKENx' }, 'GET', '', 401],
    ['another path', { authorization: 'TOKEN' }, 'GET', '/x', 404],
    ['a query', { authorization: 'TOKEN' }, 'GET', '?a=b', 404],
    ['another method', { authorization: 'TOKEN' }, 'POST', '', 405],
    ['a rebound name', { authorization: 'TOKEN', host: 'evil.example:80' }, 'GET', '', 421],
    ['localhost by name', { authorization: 'TOKEN', host: 'localhost' }, 'GET', '', 421],
  ])('refuses %s without revealing anything', async (_, headers, method, more, status) => {
    const { request } = await import('node:http')
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('TOKEN', authorization)]),
    )
    const reply = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const sent = request(url + more, { method, headers: given }, (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
      })
      sent.on('error', reject).end()
    })
    expect(reply.status).toBe(status)
    expectNoSecret(reply.text, 'session==', authorization)
  })

  test('exits with the code of the child, revokes everything and leaves nothing behind', async () => {
    const held = await fetch(url, { headers: { authorization } }).then((reply) => reply.json())
    const id = (held as { AccessKeyId: string }).AccessKeyId.slice('ASIA-'.length)
    expect(await world.alive('cloud')).toContain(id)
    run.child.stdin?.end()
    const end = await run.ended
    expect([end.code, end.stderr]).toEqual([7, ''])
    expect(await world.alive('cloud')).not.toContain(id)
    await expect(fetch(url, { headers: { authorization } })).rejects.toThrow()
    expectNoSecret(end.stdout, 'session==')
  })

  test.each([
    ['SIGTERM to mayfly, which is passed on', (one: Started) => one.child.kill('SIGTERM'), 8],
    [
      'SIGKILL to the child',
      async (one: Started) => {
        const list = await readFile(`/proc/${one.child.pid}/task/${one.child.pid}/children`, 'utf8')
        process.kill(Number(list.trim().split(' ')[0]), 'SIGKILL')
      },
      137,
    ],
  ])('revokes everything after %s', async (_, act, code) => {
    const before = await world.alive('cloud')
    const one = await started(argv)
    expect(await world.alive('cloud')).toHaveLength(before.length + 1)
    await act(one)
    expect((await one.ended).code).toBe(code)
    expect(await world.alive('cloud')).toEqual(before)
  })

  test('reports what cannot work before the command starts', async () => {
    const touch = join(world.home, 'touched')
    const command = ['--', 'touch', touch]
    for (const [more, code, words] of [
      [['--backend', 'demo'], 1, /access_key_id/],
      [['--backend', 'cloud', '--port', '99999'], 2, /--port/],
      [['--backend', 'cloud', '--port', new URL(world.url).port], 2, /Cannot listen on port/],
      [[], 2, /--backend/],
    ] as const) {
      const end = await runCli(['aws', 'serve', ...more, ...command], world)
      expect([end.code, end.stdout]).toEqual([code, ''])
      expect(end.stderr).toMatch(words)
    }
    expect(await gone(touch)).toBe(true)
    const before = await world.alive('cloud')
    const end = await runCli(['aws', 'serve', '--backend', 'cloud', '--', 'no-such-program'], world)
    expect(end.code).toBe(127)
    expect(end.stderr).toBe('mayfly: no-such-program: command not found. No credential was issued.\n')
    expect(await world.alive('cloud')).toEqual(before)
  })

  test('keeps its own login from the child, and reports on standard error with --json', async () => {
    const look = ['sh', '-c', 'printenv MAYFLY_TOKEN || echo none']
    const end = await spawnCli(['aws', 'serve', '--backend', 'cloud', '--json', '--', ...look], world).ended
    expect([end.code, end.stdout]).toEqual([0, 'none\n'])
    expect(JSON.parse(end.stderr)).toEqual({
      credentials: [
        { id: expect.any(String), backend: 'cloud', expires_at: expect.any(String), revoked: true },
      ],
      exit_code: 0,
    })
    const kept = ['aws', 'serve', '--backend', 'cloud', '--keep-login', '--', ...look]
    expect((await spawnCli(kept, world).ended).stdout).toBe(`${world.agent.token}\n`)
  })
})

describe('aws web-identity', () => {
  test('uses the given file and session name', async () => {
    const path = join(world.home, 'own', 'token')
    const argv = ['--backend', 'demo', '--role-arn', role, '--token-file', path, '--session-name', 'ci']
    const run = await started(['aws', 'web-identity', ...argv, '--', ...child])
    expect(run.variables).toMatchObject({ AWS_WEB_IDENTITY_TOKEN_FILE: path, AWS_ROLE_SESSION_NAME: 'ci' })
    expect(await readFile(path, 'utf8')).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/)
    run.child.kill('SIGTERM')
    expect((await run.ended).code).toBe(8)
    expect(await gone(path)).toBe(true)
  })

  test('revokes everything even if the file cannot be removed', async () => {
    const path = join(world.home, 'odd', 'token')
    const odd = `const { AWS_WEB_IDENTITY_TOKEN_FILE: path } = process.env
      require('node:fs').rmSync(path)
      require('node:fs').mkdirSync(path)`
    const argv = ['aws', 'web-identity', '--backend', 'demo', '--role-arn', role, '--token-file', path]
    const end = await spawnCli([...argv, '--', process.execPath, '-e', odd], world).ended
    expect(await world.alive('demo')).toEqual([])
    expect(end.code).toBe(0)
    expect(end.stderr).toBe(`mayfly: Cannot remove ${path}.\n`)
  })

  test.each([
    ['no role', ['--backend', 'demo'], 2, /--role-arn is required/],
    ['a role that is not an ARN', ['--backend', 'demo', '--role-arn', 'admin'], 2, /arn:aws:iam/],
    [
      'an invalid session name',
      ['--backend', 'demo', '--role-arn', role, '--session-name', 'a b'],
      2,
      /2 to 64/,
    ],
    ['a credential that is not a JWT', ['--backend', 'cloud', '--role-arn', role], 1, /no single secret/],
  ])('refuses %s before the command starts', async (_, argv, code, words) => {
    const end = await runCli(['aws', 'web-identity', ...argv, '--', 'echo', 'ran'], world)
    expect([end.code, end.stdout]).toEqual([code, ''])
    expect(end.stderr).toMatch(words)
  })
})

// Each waits for a credential to age or for retries, so they wait together; each has an agent of its own.
describe.concurrent('in time', () => {
  test('aws serve renews credentials in time and revokes all of them', async () => {
    const agent = await world.app.newAgent({ scopes: ['*'] })
    const short = ['aws', 'serve', '--backend', 'cloud', '--ttl', '2s', '--', ...child]
    const one = await started(short, { MAYFLY_TOKEN: agent.token })
    const headers = { authorization: String(one.variables['AWS_CONTAINER_AUTHORIZATION_TOKEN']) }
    const ask = async () => {
      const reply = await fetch(String(one.variables['AWS_CONTAINER_CREDENTIALS_FULL_URI']), { headers })
      return ((await reply.json()) as { AccessKeyId: string }).AccessKeyId
    }
    const first = await ask()
    await eventually(async () => expect(await ask()).not.toBe(first))
    one.child.stdin?.end()
    expect((await one.ended).code).toBe(7)
    expect(await activeOf(world, agent)).toEqual([])
  })

  test('aws serve answers with the reason when no credential can be had', async () => {
    const agent = await world.app.newAgent({ scopes: ['*'] })
    const short = ['aws', 'serve', '--backend', 'cloud', '--ttl', '2s', '--', ...child]
    const one = await started(short, { MAYFLY_TOKEN: agent.token })
    const headers = { authorization: String(one.variables['AWS_CONTAINER_AUTHORIZATION_TOKEN']) }
    expect((await world.app.admin('DELETE', `/v1/admin/agents/${agent.name}`)).status).toBeLessThan(300)
    await eventually(async () => {
      const reply = await fetch(String(one.variables['AWS_CONTAINER_CREDENTIALS_FULL_URI']), { headers })
      const body = await reply.json()
      expect([reply.status, body]).toEqual([
        400,
        { Code: 'CredentialsRefused', Message: expect.stringMatching(/^The token is not valid/) },
      ])
    })
    one.child.stdin?.end()
    const end = await one.ended
    expect(end.code).toBe(7)
    expect(end.stderr).toMatch(/^mayfly: .+ could not be revoked/)
    expectNoSecret(end.stderr, agent.token, 'session==')
  })

  test('aws web-identity renews the token file and removes it at the end', async () => {
    const agent = await world.app.newAgent({ scopes: ['*'] })
    const argv = [
      'aws',
      'web-identity',
      '--backend',
      'demo',
      '--ttl',
      '2s',
      '--role-arn',
      role,
      '--',
      ...child,
    ]
    const run = await started(argv, { MAYFLY_TOKEN: agent.token })
    expect(run.variables).toEqual({
      AWS_ROLE_ARN: role,
      AWS_ROLE_SESSION_NAME: `mayfly-${agent.name}`,
      AWS_WEB_IDENTITY_TOKEN_FILE: expect.stringMatching(/token$/),
    })
    const path = String(run.variables['AWS_WEB_IDENTITY_TOKEN_FILE'])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    const claims = async () => JSON.parse(atob(String((await readFile(path, 'utf8')).split('.')[1])))
    const first = await claims()
    expect(first.aud).toBe('tests')
    await eventually(async () => expect((await claims()).jti).not.toBe(first.jti))
    run.child.stdin?.end()
    expect((await run.ended).code).toBe(7)
    expect(await gone(path)).toBe(true)
    expect(await activeOf(world, agent)).toEqual([])
  })

  test('aws web-identity does not wait long for a renewal without reply', async () => {
    const agent = await world.app.newAgent({ scopes: ['*'] })
    const gate = await openGate(world.url)
    const argv = ['--backend', 'demo', '--ttl', '2s', '--role-arn', role]
    const run = await started(['aws', 'web-identity', ...argv, '--', ...child], {
      MAYFLY_SERVER: gate.url,
      MAYFLY_TOKEN: agent.token,
    })
    gate.on('POST', 'hold')
    await gate.held('POST')
    // The held request never gets its reply, and must not be waited for as long as a request may take.
    gate.on('POST', 'pass')
    run.child.stdin?.end()
    expect(await withDeadline(25_000, () => run.ended)).toMatchObject({ code: 7, stderr: '' })
    await gate.close()
  })
})
