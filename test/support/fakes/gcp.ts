import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { type FakeReply, type FakeRequest, startFake } from './fake-server.ts'

const AUTH = 'https://www.googleapis.com/auth/'
const IMPERSONATING = [`${AUTH}iam`, `${AUTH}cloud-platform`]

/** OAuth, the Security Token Service, service account credentials and a bucket of Google, at one address. */
export async function startGoogle(issuer: string) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const owner = 'mayfly@project.iam.gserviceaccount.com'
  const target = 'reports@project.iam.gserviceaccount.com'
  const provider = 'projects/123456789012/locations/global/workloadIdentityPools/mayfly/providers/mayfly'
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const tokens = new Map<string, { who: string; scopes: string[]; until: number }>()
  /** Who may impersonate the target: roles/iam.serviceAccountTokenCreator. */
  const creators = new Set([owner, 'principal:backend/cloud'])
  const policy = { longestS: 3_600 }

  function grant(who: string, scopes: string[], seconds: number) {
    const token = `ya29.${randomBytes(120).toString('base64url')}`
    const until = Math.floor(Date.now() / 1000 + seconds) * 1000
    tokens.set(token, { who, scopes, until })
    return { token, until }
  }
  const oauthError = (error: string, description: string): FakeReply => ({
    status: 400,
    body: { error, error_description: description },
  })
  const apiError = (code: number, status: string, message: string): FakeReply => ({
    status: code,
    body: { error: { code, message, status } },
  })

  async function byKey(form: URLSearchParams): Promise<FakeReply> {
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
      return oauthError('unsupported_grant_type', 'Invalid grant_type')
    }
    try {
      const { payload } = await jwtVerify(String(form.get('assertion')), publicKey, {
        algorithms: ['RS256'],
        audience: 'https://oauth2.googleapis.com/token',
        issuer: owner,
        maxTokenAge: 3_600,
        requiredClaims: ['exp', 'iat', 'scope'],
      })
      if (Number(payload.exp) - Number(payload.iat) > 3_600) throw new Error('longer than an hour')
      const { token } = grant(owner, String(payload['scope']).split(' '), 3_600)
      return { status: 200, body: { access_token: token, expires_in: 3_599, token_type: 'Bearer' } }
    } catch (error) {
      return oauthError('invalid_grant', (error as Error).message)
    }
  }

  async function exchange({ headers }: FakeRequest, form: URLSearchParams): Promise<FakeReply> {
    const expected = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      audience: `//iam.googleapis.com/${provider}`,
    }
    if (headers.authorization !== undefined)
      return oauthError('invalid_request', 'Authorization is not permitted')
    const wrong = Object.entries(expected).find(([name, value]) => form.get(name) !== value)
    if (wrong !== undefined) return oauthError('invalid_request', `Invalid ${wrong[0]}`)
    try {
      const { payload } = await jwtVerify(String(form.get('subject_token')), keys, {
        issuer,
        audience: `https://iam.googleapis.com/${provider}`,
        requiredClaims: ['exp', 'iat', 'sub'],
      })
      const { token } = grant(`principal:${payload.sub}`, String(form.get('scope')).split(' '), 3_600)
      const type = {
        issued_token_type: expected.requested_token_type,
        token_type: 'Bearer',
        expires_in: 3_599,
      }
      return { status: 200, body: { access_token: token, ...type } }
    } catch (error) {
      return oauthError('invalid_grant', `The token is not accepted: ${(error as Error).message}`)
    }
  }

  function bearer({ headers }: FakeRequest) {
    const known = tokens.get(String(headers.authorization).replace(/^Bearer /, ''))
    return known !== undefined && known.until > Date.now() ? known : undefined
  }

  function impersonate(request: FakeRequest, account: string): FakeReply {
    const caller = bearer(request)
    if (caller === undefined) return apiError(401, 'UNAUTHENTICATED', 'Invalid authentication credentials')
    if (!caller.scopes.some((scope) => IMPERSONATING.includes(scope))) {
      return apiError(403, 'PERMISSION_DENIED', 'Request had insufficient authentication scopes')
    }
    if (account !== target) return apiError(404, 'NOT_FOUND', 'Not found; Gaia id not found')
    if (!creators.has(caller.who)) {
      return apiError(403, 'PERMISSION_DENIED', "Permission 'iam.serviceAccounts.getAccessToken' denied")
    }
    const { scope, lifetime } = JSON.parse(request.body) as { scope?: string[]; lifetime?: string }
    const seconds = Number(/^(\d+)s$/.exec(lifetime ?? '3600s')?.[1])
    if (!scope?.length) return apiError(400, 'INVALID_ARGUMENT', 'Scope required')
    if (scope.some((one) => !one.startsWith(AUTH) || one.endsWith('/nothing'))) {
      return apiError(400, 'INVALID_ARGUMENT', 'Invalid OAuth scope')
    }
    if (!(seconds >= 1 && seconds <= policy.longestS)) {
      return apiError(400, 'INVALID_ARGUMENT', 'Invalid lifetime')
    }
    const { token, until } = grant(account, scope, seconds)
    const expireTime = new Date(until).toISOString().replace('.000', '')
    return { status: 200, body: { accessToken: token, expireTime } }
  }

  const server = await startFake(async (request) => {
    const [, account] =
      /^POST \/v1\/projects\/-\/serviceAccounts\/([^/]+):generateAccessToken$/.exec(request.line) ?? []
    if (account !== undefined) return impersonate(request, account)
    if (request.line === 'POST /token') return byKey(new URLSearchParams(request.body))
    if (request.line === 'POST /v1/token') return exchange(request, new URLSearchParams(request.body))
    const known = bearer(request)
    if (known === undefined) return apiError(401, 'UNAUTHENTICATED', 'Invalid Credentials')
    const needed = request.line.startsWith('GET /storage/') ? /devstorage|cloud-platform/ : /cloud-platform/
    return known.scopes.some((scope) => needed.test(scope))
      ? { status: 200, body: { kind: 'storage#objects', items: [] } }
      : apiError(403, 'PERMISSION_DENIED', 'insufficient authentication scopes')
  })
  const key = JSON.stringify({
    type: 'service_account',
    project_id: 'project',
    private_key_id: 'k1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: owner,
    token_uri: 'https://oauth2.googleapis.com/token',
  })
  return { ...server, tokens, creators, policy, key, target, provider }
}
