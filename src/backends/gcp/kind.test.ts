import { ExternalAccountClient, OAuth2Client } from 'google-auth-library'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { startGoogle } from '../../../test/support/fakes/gcp.ts'
import { startIssuer } from '../../../test/support/fakes/issuer.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { Backend, Host, Issued, IssueRequest } from '../kind.ts'
import type { Config } from './config.ts'
import { gcp } from './kind.ts'

let issuer: Awaited<ReturnType<typeof startIssuer>>
let fake: Awaited<ReturnType<typeof startGoogle>>
let host: Host
let settings: Config
beforeAll(async () => {
  issuer = await startIssuer()
  fake = await startGoogle(issuer.url)
  host = issuer.trust(createTestHost('cloud').host)
  settings = {
    service_account: fake.target,
    provider: fake.provider,
    oauth_scopes: ['cloud-platform', 'devstorage.read_only'],
    endpoint: fake.url,
    local: true,
  }
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const open = (more: Partial<Config> = {}): Promise<Backend<object>> =>
  gcp.open({ ...settings, ...more }, host)
const asking = (scopes: string[], options = {}) => newRequest(scopes, options) as IssueRequest<object>
const withKey = () => {
  const { provider: _, ...rest } = settings
  return { ...rest, key: fake.key }
}

async function status({ secret }: Issued, path: string): Promise<number> {
  const client = new OAuth2Client()
  client.setCredentials({ access_token: String(secret) })
  return client
    .request({ url: fake.url + path, validateStatus: () => true, retry: false })
    .then((reply) => reply.status)
}

describe('a token', () => {
  it('can do what its scope says and nothing else', async () => {
    await using backend = await open()
    const issued = await backend.issue(asking(['devstorage.read_only']), never())
    expect(await status(issued, '/storage/v1/b/bucket/o')).toBe(200)
    expect(await status(issued, '/compute/v1/projects/p/zones')).toBe(403)
    const all = await backend.issue(asking(['*']), never())
    expect(await status(all, '/compute/v1/projects/p/zones')).toBe(200)
    expect(all.facts?.['oauth_scopes']).toBe('cloud-platform devstorage.read_only')
  })

  it('lasts as long as asked, by the clock of Google', async () => {
    await using backend = await open()
    const request = asking(['cloud-platform'], { ttlMs: 90_000 })
    const { upstreamExpiresAt = 0 } = await backend.issue(request, never())
    expect(upstreamExpiresAt).toBeGreaterThan(request.expiresAt - 2_500)
    expect(upstreamExpiresAt).toBeLessThan(request.expiresAt + 1_000)
  })

  it('costs one request while the login of Mayfly lasts', async () => {
    await using backend = await open()
    await backend.issue(asking(['cloud-platform']), never())
    const before = fake.seen.length
    await backend.issue(asking(['cloud-platform']), never())
    expect(fake.seen.length - before).toBe(1)
  })

  it('never goes beyond the OAuth scopes of the backend, which "*" stands for', async () => {
    const oauth_scopes = ['devstorage.read_only', 'logging.read']
    await using backend = await open({ oauth_scopes })
    const before = fake.tokens.size
    for (const scopes of [['cloud-platform'], ['devstorage.read_only', 'devstorage.full_control']]) {
      await expect(backend.issue(asking(scopes), never())).rejects.toMatchObject({
        fault: 'unsupported',
        message: 'A scope is not among the OAuth scopes of the backend.',
      })
    }
    expect(fake.tokens.size).toBe(before)
    const gives = (scope: string) => gcp.scopes.gives?.({ ...settings, oauth_scopes }, scope)
    expect(['*', 'logging.read', 'cloud-platform'].map(gives)).toEqual([true, true, false])
    const issued = await backend.issue(asking(['logging.read']), never())
    expect(issued.facts?.['oauth_scopes']).toBe('logging.read')
  })

  it.each(['drive', 'gmail.readonly', 'admin.directory.user', 'devstorage.read_only'])(
    'is not for %s because the backend has cloud-platform',
    async (scope) => {
      const oauth_scopes = ['cloud-platform']
      expect(gcp.scopes.gives?.({ ...settings, oauth_scopes }, scope)).toBe(false)
      await using backend = await open({ oauth_scopes })
      await expect(backend.issue(asking([scope]), never())).rejects.toMatchObject({ fault: 'unsupported' })
    },
  )

  it('is refused where Google would not make it', async () => {
    await using backend = await open()
    const refused = (scopes: string[], options = {}) =>
      expect(backend.issue(asking(scopes, options), never())).rejects
    await refused([]).toMatchObject({ fault: 'unsupported' })
    await refused(['nothing']).toMatchObject({
      fault: 'unsupported',
      message: expect.stringContaining('OAuth scopes'),
    })
    await refused(['cloud-platform'], { ttlMs: 7_200_000 }).toMatchObject({
      message: expect.stringContaining('organization policy'),
    })
    fake.policy.longestS = 43_200
    await backend.issue(asking(['cloud-platform'], { ttlMs: 7_200_000 }), never())
    fake.policy.longestS = 3_600
  })
})

it("Google's own library gets a token of the same provider with the same id token", async () => {
  const client = ExternalAccountClient.fromJSON({
    type: 'external_account',
    audience: `//iam.googleapis.com/${fake.provider}`,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: `${fake.url}/v1/token`,
    service_account_impersonation_url: `${fake.url}/v1/projects/-/serviceAccounts/${fake.target}:generateAccessToken`,
    subject_token_supplier: {
      getSubjectToken: () =>
        host.idToken({
          audience: `https://iam.googleapis.com/${fake.provider}`,
          subject: 'backend/cloud',
          expiresAt: Date.now() + 60_000,
        }),
    },
    scopes: ['https://www.googleapis.com/auth/devstorage.read_only'],
  })
  const { token } = (await client?.getAccessToken()) ?? {}
  expect(fake.tokens.get(String(token))?.scopes).toEqual([
    'https://www.googleapis.com/auth/devstorage.read_only',
  ])
})

describe('the check', () => {
  const check = async (more: Partial<Config> = {}) => {
    await using backend = await open(more)
    return backend.check(never())
  }
  it('says what is missing', async () => {
    expect(await check()).toEqual([])
    await using keyed = await gcp.open(withKey(), host)
    expect(await keyed.check(never())).toEqual([])
    fake.creators.clear()
    await expect(check()).rejects.toThrow('Service Account Token Creator')
    fake.creators.add('principal:backend/cloud')
    await expect(check({ service_account: 'other@project.iam.gserviceaccount.com' })).rejects.toThrow(
      'does not know',
    )
    await expect(check({ provider: fake.provider.replace(/mayfly$/, 'other') })).rejects.toThrow('"provider"')
    const stranger = { ...host, name: 'other' }
    await using other = await gcp.open(settings, stranger)
    await expect(other.check(never())).rejects.toMatchObject({ fault: 'denied' })
  })

  it('refuses a configuration that cannot work', async () => {
    await expect(check({ key: fake.key })).rejects.toThrow('either "key" or "provider"')
    await expect(gcp.open({ ...withKey(), key: '{}' }, host)).rejects.toThrow('"key"')
    await expect(check({ local: false })).rejects.toThrow('"endpoint"')
    const wrong = JSON.stringify({
      ...JSON.parse(fake.key),
      client_email: 'x@project.iam.gserviceaccount.com',
    })
    await using backend = await gcp.open({ ...withKey(), key: wrong }, host)
    await expect(backend.check(never())).rejects.toThrow('"key"')
  })
})

it.each(['devstorage*', 'cloud-platform:read', 'https://x', 'A', '-x'])('does not understand %s', (scope) =>
  expect(gcp.scopes.valid(scope)).toBe(false),
)
