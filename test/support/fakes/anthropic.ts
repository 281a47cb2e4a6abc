import { randomBytes } from 'node:crypto'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { type FakeReply, type FakeRequest, startFake } from './fake-server.ts'

/** The token exchange of Workload Identity Federation, and the models that its tokens may list. */
export async function startAnthropic(issuer: string) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const ids = {
    organization_id: '00000000-0000-4000-8000-000000000000',
    federation_rule_id: 'fdrl_01fake',
    service_account_id: 'svac_01fake',
  }
  const rule = {
    subject: 'backend/claude',
    audience: 'https://api.anthropic.com',
    workspaces: ['default', 'wrkspc_01team'],
    lifetimeS: 3_600,
  }
  const tokens = new Map<string, { workspace: string; until: number }>()
  const usedIds = new Set<unknown>()
  const refused = (status: number, error: string): FakeReply => ({
    status,
    body: { error, error_description: 'The request was refused.' },
  })

  async function exchange({ headers, body }: FakeRequest): Promise<FakeReply> {
    const betas = String(headers['anthropic-beta']).split(',')
    if (!betas.includes('oidc-federation-2026-04-01')) return refused(400, 'invalid_request')
    if (headers['content-type'] !== 'application/json') return refused(400, 'invalid_request')
    const given = JSON.parse(body) as Record<string, string>
    if (given['grant_type'] !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
      return refused(400, 'unsupported_grant_type')
    }
    if (Object.entries(ids).some(([name, id]) => given[name] !== id)) return refused(401, 'invalid_grant')
    const { workspace_id: workspace = '', assertion = '' } = given
    if (assertion.length > 16_384) return refused(400, 'invalid_request')
    let lifetimeS = 0
    try {
      const { payload } = await jwtVerify(assertion, keys, {
        issuer,
        subject: rule.subject,
        audience: rule.audience,
        requiredClaims: ['exp', 'iat'],
      })
      // An id token is good for one exchange.
      if (payload.jti !== undefined && usedIds.has(payload.jti)) return refused(401, 'invalid_grant')
      usedIds.add(payload.jti)
      // SDK 1.12.0, token_lifetime_seconds: "max(60, min(this value, 2 × remaining assertion validity))"
      const remainingS = Math.floor(Number(payload.exp) - Date.now() / 1000)
      lifetimeS = Math.max(60, Math.min(rule.lifetimeS, 2 * remainingS))
    } catch {
      return refused(401, 'invalid_grant')
    }
    if (!rule.workspaces.includes(workspace)) return refused(401, 'invalid_grant')
    const access_token = `sk-ant-oat01-${randomBytes(60).toString('base64url')}`
    tokens.set(access_token, { workspace, until: Date.now() + lifetimeS * 1000 })
    const scope = 'workspace:developer'
    return { status: 200, body: { access_token, token_type: 'Bearer', expires_in: lifetimeS, scope } }
  }

  const server = await startFake(async (request) => {
    if (request.line === 'POST /v1/oauth/token') return exchange(request)
    const known = tokens.get(String(request.headers.authorization).replace(/^Bearer /, ''))
    const error = { type: 'authentication_error', message: 'invalid bearer token' }
    if (known === undefined || known.until <= Date.now())
      return { status: 401, body: { type: 'error', error } }
    if (!/^\d{4}-\d\d-\d\d$/.test(String(request.headers['anthropic-version'])))
      return { status: 400, body: { type: 'error', error } }
    const model = {
      type: 'model',
      id: 'claude-fake',
      display_name: known.workspace,
      created_at: '2026-01-01T00:00:00Z',
    }
    const data = [model]
    return { status: 200, body: { data, has_more: false, first_id: model.id, last_id: model.id } }
  })
  return { ...server, ids, rule, tokens }
}
