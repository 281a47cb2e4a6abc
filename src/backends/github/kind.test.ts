import { Octokit } from '@octokit/rest'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { startGitHub } from '../../../test/support/fakes/github.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { Backend, Issued } from '../kind.ts'
import type { Config, Params } from './config.ts'
import { github } from './kind.ts'

let fake: Awaited<ReturnType<typeof startGitHub>>
beforeAll(async () => {
  fake = await startGitHub()
  fake.install('acme')
  fake.install('octocat', { type: 'User', repositories: ['hello'] })
})
afterAll(() => fake[Symbol.asyncDispose]())

async function open(more: Partial<Config> = {}): Promise<Backend<Params>> {
  const settings = {
    app_id: fake.app.client_id,
    private_key: fake.privateKey,
    base_url: fake.url,
    local: true,
  }
  return github.open({ ...settings, ...more }, createTestHost('gh').host)
}

async function issue(scopes: string[], params: Params = {}, more: Partial<Config> = {}): Promise<Issued> {
  await using backend = await open(more)
  return backend.issue(asking(scopes, params), never())
}

const given = ({ secret }: Issued) => {
  const token = fake.tokens.get(String(secret))
  return { repositories: token?.repositories, permissions: token?.permissions }
}

const asking = (scopes: string[], params: Params = {}) => ({ ...newRequest(scopes), params })

describe('a token', () => {
  it('can do what its scope says and nothing else, until it is revoked', async () => {
    await using backend = await open()
    const issued = await backend.issue(asking(['acme/web:contents:read']), never())
    const octokit = new Octokit({
      auth: issued.secret,
      baseUrl: fake.url,
      log: { ...console, error() {}, debug() {}, info() {}, warn() {} },
    })
    const web = { owner: 'acme', repo: 'web' }
    const status = (work: Promise<{ status: number }>) =>
      work.then(
        (reply) => reply.status,
        (error) => error.status,
      )
    expect(await status(octokit.git.getRef({ ...web, ref: 'heads/main' }))).toBe(200)
    expect(await status(octokit.git.createRef({ ...web, ref: 'refs/heads/x', sha: 'a'.repeat(40) }))).toBe(
      403,
    )
    expect(await status(octokit.issues.createLabel({ ...web, name: 'x' }))).toBe(403)
    expect(await status(octokit.repos.get({ owner: 'acme', repo: 'api' }))).toBe(404)
    expect(await status(octokit.repos.get({ owner: 'octocat', repo: 'hello' }))).toBe(404)
    expect(issued.upstreamExpiresAt).toBeGreaterThan(Date.now() + 3_500_000)
    await backend.revoke?.(issued.handle ?? {}, never())
    expect(await status(octokit.git.getRef({ ...web, ref: 'heads/main' }))).toBe(401)
    await backend.revoke?.(issued.handle ?? {}, never())
  })

  it.each<[string, string[], Params, [string[], object]]>([
    ['one permission', ['acme/web:issues:write'], {}, [['web'], { issues: 'write' }]],
    ['a permission as high as installed', ['acme/web:contents'], {}, [['web'], { contents: 'write' }]],
    [
      'several',
      ['acme/web:issues:read', 'acme/web:contents:read'],
      {},
      [['web'], { issues: 'read', contents: 'read' }],
    ],
    [
      'all that the App may do there, but nothing of the organization',
      ['acme/web'],
      {},
      [['web'], { contents: 'write', issues: 'write' }],
    ],
    ['all for reading', ['acme/web:read'], {}, [['web'], { contents: 'read', issues: 'read' }]],
    [
      'the listed repositories, in place of the whole installation',
      ['acme/*:contents:read'],
      {},
      [['web', 'web-docs', 'api'], { contents: 'read' }],
    ],
    ['those that begin so', ['acme/web*:contents:read'], {}, [['web', 'web-docs'], { contents: 'read' }]],
    [
      'the repositories of the request',
      ['acme/*:contents'],
      { repos: ['acme/api'] },
      [['api'], { contents: 'write' }],
    ],
    ['read_only', ['acme/web'], { read_only: true }, [['web'], { contents: 'read', issues: 'read' }]],
    [
      'the repositories of the request, of everything',
      ['*'],
      { repos: ['acme/web', 'acme/api'] },
      [['web', 'api'], { contents: 'write', issues: 'write' }],
    ],
    [
      'scopes of the repository that the request names',
      ['acme/web:contents', 'octocat/hello:issues'],
      { repos: ['acme/web'] },
      [['web'], { contents: 'write' }],
    ],
    ['the account of a user', ['octocat/hello:issues:read'], {}, [['hello'], { issues: 'read' }]],
    ['another case of letters', ['Acme/Web:issues:read'], {}, [['Web'], { issues: 'read' }]],
  ])('is for %s', async (_, scopes, params, [repositories, permissions]) => {
    expect(given(await issue(scopes, params))).toEqual({
      repositories,
      permissions: { metadata: 'read', ...permissions },
    })
  })

  it.each<[string, string[], Params, RegExp]>([
    ['no scopes', [], {}, /Name the account/],
    [
      'different permissions on two repositories',
      ['acme/web:contents', 'acme/api:issues'],
      {},
      /same permissions/,
    ],
    ['two accounts', ['acme/web', 'octocat/hello'], {}, /one account/],
    [
      'a permission that the App lacks',
      ['acme/web:actions:read'],
      {},
      /does not have the permission actions:read/,
    ],
    ['a level that the App lacks', ['acme/web:metadata:write'], {}, /does not have/],
    ['a repository outside the scopes', ['acme/web'], { repos: ['acme/api'] }, /do not cover/],
    ['a repository outside the installation', ['acme/other'], {}, /does not exist in the installation/],
    ['no repository that begins so', ['acme/zzz*'], {}, /No repository/],
    ['everything, of no account', ['*'], {}, /Name the account/],
  ])('is refused for %s', async (_, scopes, params, message) => {
    const before = fake.tokens.size
    await expect(issue(scopes, params)).rejects.toMatchObject({
      fault: 'unsupported',
      message: expect.stringMatching(message),
    })
    expect(fake.tokens.size).toBe(before)
  })

  it("is refused for an account that is not this backend's, or has no installation", async () => {
    await expect(issue(['octocat/hello'], {}, { owner: 'acme' })).rejects.toMatchObject({
      fault: 'unsupported',
    })
    await expect(issue(['nobody/x'])).rejects.toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('nobody'),
    })
    expect(github.scopes.gives?.({ owner: 'acme' } as Config, 'octocat/hello')).toBe(false)
  })

  it('reaches as many repositories as GitHub permits, and no more', async () => {
    const names = Array.from({ length: 501 }, (_, index) => `repo-${index}`)
    fake.install('large', { repositories: names })
    const issued = await issue(['large/*:contents:read'], { repos: names.slice(0, 500) })
    expect(given(issued).repositories).toHaveLength(500)
    await expect(issue(['large/*:contents:read'])).rejects.toMatchObject({
      fault: 'unsupported',
      message: expect.stringContaining('501'),
    })
  })
})

describe('the upstream', () => {
  it('receives the headers and the token that GitHub documents', async () => {
    await issue(['acme/web:issues:read'], {}, { installation_id: 1000 })
    const { headers } = fake.seen.at(-1) ?? {}
    expect(headers).toMatchObject({
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    })
  })

  it('may have changed since it was last asked', async () => {
    const one = fake.install('moving', { repositories: ['old'] })
    await using backend = await open()
    await backend.issue(asking(['moving/*:contents']), never())
    one.repositories = ['new']
    one.permissions = { contents: 'read', actions: 'read', metadata: 'read' }
    const issued = await backend.issue(asking(['moving/*:actions']), never())
    expect(given(issued)).toEqual({
      repositories: ['new'],
      permissions: { actions: 'read', metadata: 'read' },
    })
    one.suspended = true
    await expect(backend.issue(asking(['moving/new']), never())).rejects.toMatchObject({
      fault: 'denied',
    })
  })

  const LINE = 'POST /app/installations/1000/access_tokens'
  const reply = (changes: object) => () => ({
    status: 201,
    body: {
      token: 'ghs_x',
      expires_at: '2030-01-01T00:00:00Z',
      permissions: { contents: 'read' },
      repositories: [{ name: 'web' }],
      ...changes,
    },
  })
  it.each<[string, () => { status: number; body?: unknown; headers?: Record<string, string> }, object]>([
    ['without a token', reply({ token: undefined }), { fault: 'unavailable' }],
    ['without an end', reply({ expires_at: 'soon' }), { fault: 'unavailable' }],
    ['with more permissions', reply({ permissions: { contents: 'write' } }), { fault: 'misconfigured' }],
    ['for more repositories', reply({ repositories: [{ name: 'api' }] }), { fault: 'misconfigured' }],
    ['for all repositories', reply({ repositories: undefined }), { fault: 'misconfigured' }],
    [
      'that is limited',
      () => ({ status: 403, body: {}, headers: { 'x-ratelimit-remaining': '0' } }),
      { fault: 'unavailable' },
    ],
    [
      'that is limited otherwise',
      () => ({ status: 403, body: {}, headers: { 'retry-after': '60' } }),
      { fault: 'unavailable' },
    ],
    [
      'that names a secondary limit in its message alone',
      () => ({
        status: 403,
        body: { message: 'You have exceeded a secondary rate limit. Please wait a few minutes.' },
        headers: { 'x-ratelimit-remaining': '4999' },
      }),
      { fault: 'unavailable' },
    ],
    ['that is not JSON', () => ({ status: 201, body: 'hello' }), { fault: 'unavailable' }],
  ])('may give an answer %s', async (_, answer, expected) => {
    fake.interrupt(LINE, answer)
    await expect(issue(['acme/web:contents:read'])).rejects.toMatchObject(expected)
  })

  it('is asked once more whether a token lives only while it may', async () => {
    const issued = await issue(['acme/web:issues:read'])
    await using backend = await open()
    fake.interrupt('DELETE /installation/token', () => ({ status: 401, body: '<html>a proxy</html>' }))
    await expect(backend.revoke?.(issued.handle ?? {}, never())).rejects.toMatchObject({ fault: 'denied' })
    fake.interrupt('DELETE /installation/token', () => ({ status: 403, body: { message: 'suspended' } }))
    await expect(backend.revoke?.(issued.handle ?? {}, never())).rejects.toMatchObject({ fault: 'denied' })
    await backend.revoke?.({ ...issued.handle, expires_at: Date.now() - 120_000 }, never())
    await backend.revoke?.(issued.handle ?? {}, never())
    await expect(backend.revoke?.({}, never())).rejects.toMatchObject({ fault: 'misconfigured' })
  })
})

describe('the check', () => {
  const check = async (more: Partial<Config>) => {
    await using backend = await open(more)
    return backend.check(never())
  }
  it('says what is missing, and leaves nothing behind', async () => {
    const before = fake.tokens.size
    fake.install('empty', { permissions: { metadata: 'read', members: 'write' } })
    fake.install('resting', { suspended: true })
    fake.install('risky', { permissions: { administration: 'write' } })
    expect(await check({})).toEqual([])
    expect(await check({ owner: 'acme' })).toEqual([])
    expect(await check({ owner: 'octocat' })).toEqual([])
    expect(await check({ owner: 'risky' })).toEqual([expect.stringContaining('administer')])
    await expect(check({ owner: 'nobody' })).rejects.toThrow('no installation in the account nobody')
    await expect(check({ owner: 'empty' })).rejects.toThrow('no permission on repositories')
    await expect(check({ owner: 'resting' })).rejects.toThrow('suspended')
    await expect(check({ owner: 'acme', installation_id: 1001 })).rejects.toThrow('account acme')
    await expect(check({ installation_id: 9 })).rejects.toThrow('installation_id')
    await expect(check({ app_id: '1' })).rejects.toBeInstanceOf(Error)
    expect(fake.tokens.size).toBe(before)
  })

  it("refuses keys that are not GitHub's, and http elsewhere", async () => {
    await expect(check({ private_key: 'x' })).rejects.toThrow('"private_key"')
    await expect(check({ local: false })).rejects.toThrow('"base_url"')
    const other = await startGitHub()
    await expect(check({ private_key: other.privateKey })).rejects.toMatchObject({ fault: 'denied' })
    await other[Symbol.asyncDispose]()
  })

  it('warns of a clock that differs', async () => {
    fake.interrupt('GET /app', () => ({
      status: 200,
      body: { node_id: 'A' },
      headers: { date: 'Fri, 01 Jan 2027 00:00:00 GMT' },
    }))
    expect(await check({})).toEqual([expect.stringContaining('clock')])
  })
})
