import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import { type FakeReply, type FakeRequest, startFake } from './fake-server.ts'

const TENANT = '11111111-2222-3333-4444-555555555555'
const CLIENT = '66666666-7777-8888-9999-000000000000'

function fault(status: number, error: string, code: number, text: string): FakeReply {
  const error_description = `AADSTS${code}: ${text} Trace ID: 0 Correlation ID: 0`
  return {
    status,
    body: { error, error_description, error_codes: [code], trace_id: '0', correlation_id: '0' },
  }
}

/** The token endpoint of Microsoft Entra, and a resource that believes its tokens. */
export async function startEntra(issuer: string, certificate: string, tls?: { cert: string; key: string }) {
  const x509 = new X509Certificate(certificate)
  const thumbprint = Buffer.from(x509.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
  const { privateKey: stranger } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const secret = randomBytes(30).toString('base64url')
  const resources = new Set([
    'https://management.azure.com',
    'https://vault.azure.net',
    'https://analysis.windows.net/powerbi/api',
    'api://orders',
    // Databricks.
    '2ff814a6-3304-4ab8-85cb-cd0e6f879c1d',
  ])
  const federated = { issuer, subject: 'backend/cloud', audience: 'api://AzureADTokenExchange' }
  const tokens = new Map<string, string>()
  const usedIds = new Set<unknown>()

  async function assertionFault(assertion: string, url: string): Promise<FakeReply | undefined> {
    const header = decodeProtectedHeader(assertion) as Record<string, unknown>
    try {
      if (header['x5t#S256'] === undefined) {
        const { iss, ...rest } = (await jwtVerify(assertion, keys, federated)).payload
        return iss === undefined || rest.exp === undefined
          ? fault(401, 'invalid_client', 700021, 'No claims.')
          : undefined
      }
      if (header['x5t#S256'] !== thumbprint || header['typ'] !== 'JWT') {
        return fault(401, 'invalid_client', 700027, 'The certificate is not registered on the application.')
      }
      const { payload } = await jwtVerify(assertion, x509.publicKey, {
        algorithms: ['PS256'],
        audience: url,
        issuer: CLIENT,
        subject: CLIENT,
        maxTokenAge: 600,
        // Microsoft's own library rounds up.
        clockTolerance: 300,
        requiredClaims: ['exp', 'nbf', 'jti'],
      })
      if (usedIds.has(payload.jti))
        return fault(401, 'invalid_client', 700025, 'The assertion was used before.')
      usedIds.add(payload.jti)
      return undefined
    } catch (error) {
      return fault(401, 'invalid_client', 700211, `No matching record: ${(error as Error).message}`)
    }
  }

  async function takeToken({ body, headers }: FakeRequest, url: string): Promise<FakeReply> {
    if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
      return fault(400, 'invalid_request', 900144, 'The body must be a form.')
    }
    const form = new URLSearchParams(body)
    if (form.get('grant_type') !== 'client_credentials')
      return fault(400, 'unsupported_grant_type', 70003, 'Grant.')
    if (form.get('client_id') !== CLIENT)
      return fault(400, 'unauthorized_client', 700016, 'Application not found.')
    const assertion = form.get('client_assertion')
    if (assertion !== null) {
      if (form.get('client_assertion_type') !== 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer') {
        return fault(400, 'invalid_request', 50027, 'Assertion type.')
      }
      const wrong = await assertionFault(assertion, url)
      if (wrong !== undefined) return wrong
    } else if (form.get('client_secret') !== secret) {
      return fault(401, 'invalid_client', 7000215, 'Invalid client secret provided.')
    }
    const scope = form.get('scope') ?? ''
    if (!scope.endsWith('/.default'))
      return fault(400, 'invalid_scope', 1002012, 'Scope must end with /.default.')
    const resource = scope.slice(0, -'/.default'.length)
    if (!resources.has(resource))
      return fault(400, 'invalid_resource', 500011, 'The resource principal was not found.')
    const access_token = `eyJ${randomBytes(400).toString('base64url')}`
    tokens.set(access_token, resource)
    return {
      status: 200,
      body: { token_type: 'Bearer', expires_in: 3_899, ext_expires_in: 3_899, access_token },
    }
  }

  const server = await startFake(async (request) => {
    const [, tenant] = /^POST \/([^/]+)\/oauth2\/v2\.0\/token$/.exec(request.line) ?? []
    if (tenant === TENANT) return takeToken(request, `${server.url}${request.url.pathname}`)
    if (request.line === `GET /${TENANT}/v2.0/.well-known/openid-configuration`) {
      const at = `${server.url}/${TENANT}`
      const endpoints = {
        token_endpoint: `${at}/oauth2/v2.0/token`,
        authorization_endpoint: `${at}/authorize`,
      }
      return { status: 200, body: { ...endpoints, issuer: `${at}/v2.0`, jwks_uri: `${at}/keys` } }
    }
    if (tenant !== undefined) return fault(400, 'invalid_request', 90002, 'Tenant not found.')
    const resource = tokens.get(String(request.headers.authorization).replace(/^Bearer /, ''))
    const isHere = resource === 'https://management.azure.com'
    return isHere
      ? { status: 200, body: { value: [] } }
      : { status: 401, body: { error: { code: 'InvalidAuthenticationTokenAudience' } } }
  }, tls)
  return {
    ...server,
    tenant: TENANT,
    client: CLIENT,
    secret,
    stranger: stranger.export({ type: 'pkcs8', format: 'pem' }).toString(),
    federated,
    resources,
    tokens,
  }
}
