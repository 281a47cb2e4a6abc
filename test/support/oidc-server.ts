import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import Provider, { type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider'

export const OIDC_SCOPES = ['orders:read', 'orders:write', 'https://api.test/users.read']
const SECRET = 'a secret with a % and a : in it, long enough'
/** Of the tokens of the client `short`. */
const SHORT_S = 5
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

export interface OidcServer {
  readonly url: string
  readonly tokenEndpoint: string
  readonly revocationEndpoint: string
  readonly secret: string
  /** PEM of the key that the client `signed` logs in with. */
  readonly privateKey: string
  /** What a resource server learns of a token (RFC 7662). */
  introspect(
    token: string,
  ): Promise<{ readonly active: boolean; readonly scope?: string; readonly exp?: number }>
  /** Somebody signs in and lets the client `basic` act for them. Returns the refresh token. */
  signIn(scopes?: readonly string[]): Promise<string>
  /** Whether a refresh token of a sign-in can be used now. */
  isUsable(refreshToken: string): Promise<boolean>
  /** Requests to the token endpoint, as they came. */
  readonly seen: readonly URLSearchParams[]
  /** Called with each request before the server sees it. */
  before: (path: string) => Promise<void>
  /** Token exchange accepts tokens of this issuer for the audience. */
  trust(issuer: { readonly jwks: string; readonly issuer: string; readonly audience: string }): void
  close(): Promise<void>
}

/** The authorization server of the npm package `oidc-provider`, with refresh tokens that rotate at each use. */
export async function startOidcServer(): Promise<OidcServer> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'jwk' } as never,
  })
  let listener: RequestListener = (_, response) => response.writeHead(503).end()
  const server = createServer((request, response) => {
    void opened.before(request.url ?? '').then(() => listener(request, response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(url, configurationOf(publicKey as unknown as Record<string, string>))
  // The package warns of its in-memory store and of http.
  provider.proxy = true
  const seen: URLSearchParams[] = []
  provider.use(async (ctx, next) => {
    await next()
    if (ctx.path === '/token')
      seen.push(new URLSearchParams({ ...(ctx.oidc?.body as Record<string, string>) }))
  })
  let trusted: Parameters<OidcServer['trust']>[0] | undefined
  provider.registerGrantType(EXCHANGE, (ctx) => exchange(provider, ctx, trusted), [
    'subject_token',
    'subject_token_type',
    'requested_token_type',
    'scope',
    'audience',
  ])
  listener = provider.callback()

  const opened: OidcServer = {
    url,
    tokenEndpoint: `${url}/token`,
    revocationEndpoint: `${url}/token/revocation`,
    secret: SECRET,
    privateKey: privateKey as unknown as string,
    seen,
    before: async () => undefined,
    async introspect(token) {
      const body = new URLSearchParams({ token, client_id: 'post', client_secret: SECRET })
      const reply = await fetch(`${url}/token/introspection`, { method: 'POST', body })
      return (await reply.json()) as { active: boolean }
    },
    async signIn(scopes = OIDC_SCOPES) {
      const client = await provider.Client.find('basic')
      if (client === undefined) throw new Error('no client')
      const grant = new provider.Grant({ accountId: 'user', clientId: 'basic' })
      grant.addOIDCScope(['openid', 'offline_access', ...scopes].join(' '))
      const token = new provider.RefreshToken({
        accountId: 'user',
        client,
        clientId: 'basic',
        grantId: await grant.save(),
        gty: 'authorization_code',
        scope: ['openid', 'offline_access', ...scopes].join(' '),
      } as never)
      return token.save()
    },
    async isUsable(refreshToken) {
      const token = await provider.RefreshToken.find(refreshToken)
      return token !== undefined && token.consumed === undefined
    },
    trust(issuer) {
      trusted = issuer
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return opened
}

function configurationOf(publicKey: Record<string, string>): Configuration {
  const shared = {
    redirect_uris: ['https://client.test/back'],
    response_types: ['code' as const],
    scope: ['openid', 'offline_access', ...OIDC_SCOPES].join(' '),
    client_secret: SECRET,
  }
  const grants = { grant_types: ['client_credentials', 'authorization_code', 'refresh_token', EXCHANGE] }
  return {
    clients: [
      { ...shared, ...grants, client_id: 'basic', token_endpoint_auth_method: 'client_secret_basic' },
      { ...shared, ...grants, client_id: 'short', token_endpoint_auth_method: 'client_secret_basic' },
      { ...shared, ...grants, client_id: 'post', token_endpoint_auth_method: 'client_secret_post' },
      {
        ...shared,
        ...grants,
        client_id: 'signed',
        client_secret: undefined as never,
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [{ ...publicKey, kid: 'mayfly', use: 'sig' } as never] },
      },
      {
        ...shared,
        client_id: 'narrow',
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    scopes: ['openid', 'offline_access', 'admin', ...OIDC_SCOPES],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    features: {
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
      introspection: { enabled: true, allowedPolicy: async () => true },
      devInteractions: { enabled: false },
    },
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 900,
      ClientCredentials: (_ctx, _token, client) => (client.clientId === 'short' ? SHORT_S : 900),
      RefreshToken: 86_400,
      Grant: 86_400,
    },
    findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  }
}

/** RFC 8693, as the documentation of the package shows a grant of one's own. */
async function exchange(
  provider: Provider,
  ctx: KoaContextWithOIDC,
  trusted: Parameters<OidcServer['trust']>[0] | undefined,
): Promise<void> {
  const params = ctx.oidc.params as Record<string, string | undefined>
  if (trusted === undefined || params['subject_token_type'] !== 'urn:ietf:params:oauth:token-type:jwt') {
    throw new errors.InvalidRequest('subject_token_type')
  }
  const keys = createRemoteJWKSet(new URL(trusted.jwks))
  const claims = await jwtVerify(params['subject_token'] ?? '', keys, trusted).catch(() => {
    throw new errors.InvalidGrant('subject_token')
  })
  const asked = (params['scope'] ?? '').split(' ').filter((text) => text !== '')
  const refused = asked.find((scope) => !OIDC_SCOPES.includes(scope))
  if (refused !== undefined) throw new errors.InvalidScope('not allowed', refused)
  const token = new provider.ClientCredentials({ client: ctx.oidc.client, scope: asked.join(' ') } as never)
  ctx.oidc.entity('ClientCredentials', token)
  ctx.body = {
    access_token: await token.save(),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: token.expiration,
    scope: asked.join(' '),
    sub: claims.payload.sub,
  }
}
