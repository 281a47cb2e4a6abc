import { publishRevoked } from '../../core/backends/publish-revoked.ts'
import type { Core } from '../../core/context.ts'
import { JWT_BEARER, TOKEN_EXCHANGE } from '../../core/oauth/exchange-token.ts'
import { publishBackendKeys, publishIssuerKeys } from '../../core/oauth/publish-keys.ts'
import { addRoute, type Http } from '../routing/route.ts'

type Settings = Core['settings']

const AUTH_METHODS = ['client_secret_post', 'client_secret_basic', 'private_key_jwt']
/** `Ed25519` is the name that RFC 9864 gives to EdDSA over that curve; clients send either. */
const ASSERTION_ALGORITHMS = ['EdDSA', 'Ed25519', 'ES256']

/** Of agents: with secrets, and of workloads that somebody else vouches for. */
const AGENT_GRANTS = ['client_credentials', TOKEN_EXCHANGE, JWT_BEARER]
const COMMAND_GRANTS = ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code']

/**
 * Agents have no authorization endpoint and so no response type, but the member is required and must not be empty (RFC 8414
 * §3.2). Other issuers without such an endpoint (Kubernetes, GitHub Actions) publish `id_token`, and services that
 * federate by web identity accept it.
 */
const RESPONSE_TYPES = ['id_token']

/** How the command logs in as an operator; nothing of it while that is off. */
function operatorLogin({ issuer, relyingParty }: Settings) {
  return {
    device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
    authorization_endpoint: `${relyingParty.consoleUrl}/allow`,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

/** Lists only endpoints that the server has. */
function issuerDocument(settings: Settings) {
  const { issuer } = settings
  const isOn = settings.operatorLogin === 'on'
  return {
    ...(isOn ? operatorLogin(settings) : {}),
    issuer,
    token_endpoint: `${issuer}/oauth/token`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    grant_types_supported: [...AGENT_GRANTS, ...(isOn ? COMMAND_GRANTS : [])],
    response_types_supported: [...(isOn ? ['code'] : []), ...RESPONSE_TYPES],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    scopes_supported: ['openid'],
    claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'agent_name'],
    // `none`: workloads, and the command, are public clients (RFC 8414 §2).
    token_endpoint_auth_methods_supported: [...AUTH_METHODS, 'none'],
    token_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    introspection_endpoint_auth_methods_supported: AUTH_METHODS,
    introspection_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
    revocation_endpoint_auth_methods_supported: AUTH_METHODS,
    revocation_endpoint_auth_signing_alg_values_supported: ASSERTION_ALGORITHMS,
  }
}

function backendDocument(issuer: string, algorithms: readonly string[]) {
  return {
    issuer,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    response_types_supported: RESPONSE_TYPES,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: algorithms,
    claims_supported: ['iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti', 'client_id', 'scope'],
  }
}

/** Discovery and keys, for the server as an issuer and for each backend that is one. */
export function wellKnownRoutes(http: Http): void {
  const document = issuerDocument(http.core.settings)
  addRoute(http, 'GET /.well-known/openid-configuration', () => document)
  addRoute(http, 'GET /.well-known/oauth-authorization-server', () => document)
  addRoute(http, 'GET /.well-known/jwks.json', async () => ({ keys: await publishIssuerKeys(http.core) }))
  addRoute(
    http,
    'GET /backends/:backend/.well-known/openid-configuration',
    async ({ params: { backend } }) => {
      const keys = await publishBackendKeys(http.core, backend)
      const algorithms = [...new Set(keys.map((key) => String(key['alg'])))]
      return backendDocument(`${http.core.settings.issuer}/backends/${backend}`, algorithms)
    },
  )
  addRoute(http, 'GET /backends/:backend/.well-known/jwks.json', async ({ params: { backend } }) => ({
    keys: await publishBackendKeys(http.core, backend),
  }))
  addRoute(http, 'GET /backends/:backend/revoked', async ({ params: { backend }, reply }) => {
    const { contentType, body } = await publishRevoked(http.core, backend)
    reply.header('content-type', contentType)
    // A view: a copy for every reader would cost as much as making the list.
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  })
}
