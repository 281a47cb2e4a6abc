import Anthropic from '@anthropic-ai/sdk'
import { oidcFederationProvider } from '@anthropic-ai/sdk/lib/credentials/oidc-federation'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { startAnthropic } from '../../../test/support/fakes/anthropic.ts'
import { startIssuer } from '../../../test/support/fakes/issuer.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { Backend, Host, IssueRequest } from '../kind.ts'
import { anthropic, type Config } from './kind.ts'

let issuer: Awaited<ReturnType<typeof startIssuer>>
let fake: Awaited<ReturnType<typeof startAnthropic>>
let host: Host
let settings: Config
beforeAll(async () => {
  issuer = await startIssuer()
  fake = await startAnthropic(issuer.url)
  host = issuer.trust(createTestHost('claude').host)
  settings = {
    ...fake.ids,
    workspaces: ['default', 'wrkspc_01team'],
    audience: fake.rule.audience,
    base_url: fake.url,
    local: true,
  }
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const open = (more: Partial<Config> = {}, on = host): Promise<Backend<object>> =>
  anthropic.open({ ...settings, ...more }, on)
const asking = (scopes: string[], options = {}) => newRequest(scopes, options) as IssueRequest<object>

describe('a token', () => {
  it('works with the variables that the SDK reads, in its workspace, until the rule ends it', async () => {
    await using backend = await open()
    const { secret, upstreamExpiresAt = 0 } = await backend.issue(
      asking(['wrkspc_01team'], { ttlMs: 2 * 3_600_000 }),
      never(),
    )
    expect(anthropic.environment).toEqual({
      ANTHROPIC_AUTH_TOKEN: '{secret}',
      ANTHROPIC_CUSTOM_HEADERS: 'anthropic-beta: oauth-2025-04-20',
    })
    const client = new Anthropic({ authToken: String(secret), apiKey: null, baseURL: fake.url })
    expect((await client.models.list()).data[0]?.display_name).toBe('wrkspc_01team')
    expect(upstreamExpiresAt - Date.now()).toBeGreaterThan(3_590_000)
    expect(upstreamExpiresAt - Date.now()).toBeLessThan(3_601_000)
  })

  it.each([60, 300, 1_800, 3_600])('of a credential for %d s lasts no longer', async (seconds) => {
    await using backend = await open()
    const request = asking(['default'], { ttlMs: seconds * 1_000 })
    const { upstreamExpiresAt = request.expiresAt } = await backend.issue(request, never())
    // The least that Anthropic makes is a minute; what the way takes comes off both ends.
    expect(upstreamExpiresAt).toBeLessThanOrEqual(request.expiresAt + 2_000)
    expect(upstreamExpiresAt).toBeGreaterThan(request.expiresAt - 10_000)
  })

  it.each([
    ['default', 'default'],
    ['wrkspc_*', 'wrkspc_01team'],
  ])('of the scope %s is for the workspace %s', async (scope, workspace) => {
    await using backend = await open()
    const { secret } = await backend.issue(asking([scope]), never())
    expect(fake.tokens.get(String(secret))?.workspace).toBe(workspace)
  })

  it.each([[[]], [['*']], [['default', 'wrkspc_01team']], [['wrkspc_other']]])(
    'is refused for %j',
    async (scopes) => {
      await using backend = await open()
      const before = fake.seen.length
      await expect(backend.issue(asking(scopes), never())).rejects.toMatchObject({ fault: 'unsupported' })
      expect(fake.seen.length).toBe(before)
    },
  )
})

it("Anthropic's own library gets a token with the same id token", async () => {
  const provide = oidcFederationProvider({
    identityTokenProvider: () =>
      host.idToken({
        audience: fake.rule.audience,
        subject: 'backend/claude',
        expiresAt: Date.now() + 60_000,
      }),
    federationRuleId: fake.ids.federation_rule_id,
    organizationId: fake.ids.organization_id,
    serviceAccountId: fake.ids.service_account_id,
    workspaceId: 'wrkspc_01team',
    baseURL: fake.url,
    fetch,
  })
  expect(fake.tokens.get((await provide()).token)?.workspace).toBe('wrkspc_01team')
})

describe('the check', () => {
  const check = async (more: Partial<Config> = {}, on = host) => {
    await using backend = await open(more, on)
    return backend.check(never())
  }
  it('says what is missing', async () => {
    expect(await check()).toEqual([])
    await expect(check({ workspaces: ['wrkspc_other'] })).rejects.toThrow('its workspaces')
    await expect(check({ federation_rule_id: 'fdrl_other' })).rejects.toMatchObject({ fault: 'denied' })
    await expect(check({ audience: 'other' })).rejects.toThrow('federation rule')
    await expect(check({}, { ...host, name: 'other' })).rejects.toThrow('federation rule')
    await expect(check({ base_url: 'http://127.0.0.1:1' })).rejects.toMatchObject({ fault: 'unavailable' })
    await expect(check({ local: false })).rejects.toThrow('"base_url"')
  })

  it.each([
    [{ status: 200, body: { access_token: 'x' } }, 'unavailable'],
    [{ status: 200, body: { expires_in: 60 } }, 'unavailable'],
    [{ status: 429, body: {} }, 'unavailable'],
    [{ status: 529, body: {} }, 'unavailable'],
    [{ status: 400, body: { error: 'invalid_request' } }, 'misconfigured'],
    [{ status: 400, body: { error: 'invalid_grant' } }, 'denied'],
  ])('takes %j for what it is', async (reply, fault) => {
    fake.interrupt('POST /v1/oauth/token', () => reply)
    await expect(check()).rejects.toMatchObject({ fault })
  })
})

it.each(['default:read', 'wrkspc-1', '_x'])('does not understand the scope %s', (scope) =>
  expect(anthropic.scopes.valid(scope)).toBe(false),
)
