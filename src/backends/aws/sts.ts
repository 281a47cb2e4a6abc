import { BackendError, type Host } from '../kind.ts'
import { type Config, endpointOf } from './config.ts'

/** What STS returns (AWS STS API Reference, "Credentials"). */
export interface Session {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  /** Epoch ms. */
  readonly expiresAt: number
}

export interface SessionRequest {
  readonly name: string
  readonly seconds: number
  readonly policy: string | undefined
}

/** A role session, by the access key or with an id token of Mayfly. Throws `BackendError`. */
export async function assumeRole(
  settings: Config,
  host: Host,
  { name, seconds, policy }: SessionRequest,
  signal: AbortSignal,
): Promise<Session> {
  const form = new URLSearchParams({
    Version: '2011-06-15',
    RoleArn: settings.role_arn,
    RoleSessionName: name,
    DurationSeconds: String(seconds),
    ...(policy === undefined ? {} : { Policy: policy }),
  })
  return sessionOf(
    settings.access_key_id === undefined
      ? await withIdToken(settings, host, form, signal)
      : await withAccessKey(settings, host, form, signal),
  )
}

/** AWS STS API Reference, "AssumeRoleWithWebIdentity": no signature, the token is the proof. */
async function withIdToken(settings: Config, host: Host, form: URLSearchParams, signal: AbortSignal) {
  if (settings.external_id !== undefined)
    throw new BackendError('misconfigured', '"external_id" needs an access key.')
  form.set('Action', 'AssumeRoleWithWebIdentity')
  const audience = settings.audience ?? 'sts.amazonaws.com'
  const subject = `backend/${host.name}`
  form.set('WebIdentityToken', await host.idToken({ audience, subject, expiresAt: host.now() + 300_000 }))
  return post(settings, host, { headers: FORM, body: form.toString() }, signal)
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }

/** Signed (AWS General Reference, "Signature Version 4"). */
async function withAccessKey(settings: Config, host: Host, form: URLSearchParams, signal: AbortSignal) {
  const { AwsV4Signer } = await import('aws4fetch')
  form.set('Action', 'AssumeRole')
  if (settings.external_id !== undefined) form.set('ExternalId', settings.external_id)
  const signed = await new AwsV4Signer({
    method: 'POST',
    url: endpointOf(settings),
    headers: FORM,
    body: form.toString(),
    accessKeyId: settings.access_key_id ?? '',
    secretAccessKey: settings.secret_access_key ?? '',
    service: 'sts',
    region: settings.region,
  }).sign()
  return post(settings, host, { headers: Object.fromEntries(signed.headers), body: form.toString() }, signal)
}

async function post(
  settings: Config,
  host: Host,
  request: { readonly headers: Record<string, string>; readonly body: string },
  signal: AbortSignal,
): Promise<string> {
  const { local, ca } = settings
  const response = await host.fetch(
    endpointOf(settings),
    { ...request, method: 'POST', signal },
    { local, ...(ca === undefined ? {} : { ca }) },
  )
  const text = await response.text()
  if (response.ok) return text
  throw faultOf(response.status, text)
}

/**
 * AWS STS API Reference, "Common Errors" and the errors of the two actions. Nothing is made upstream but a session, which nobody
 * has received.
 */
const FAULTS: readonly [RegExp, 'denied' | 'misconfigured' | 'unsupported' | 'unavailable', string][] = [
  [
    /^PackedPolicyTooLarge/,
    'unsupported',
    'These scopes make a session policy that AWS finds too large; request fewer.',
  ],
  [
    /^(Throttling|IDPCommunicationError|ServiceUnavailable|RequestLimitExceeded)/,
    'unavailable',
    'AWS STS is busy, or cannot reach the issuer of the id token.',
  ],
  [
    /^(InvalidClientTokenId|SignatureDoesNotMatch|IncompleteSignature|InvalidAccessKeyId|ExpiredToken)/,
    'misconfigured',
    'AWS STS does not accept the access key of Mayfly.',
  ],
  [
    /^(InvalidIdentityToken|IDPRejectedClaim|ExpiredTokenException)/,
    'misconfigured',
    "AWS STS does not accept Mayfly's id token: it must be able to fetch the JWKS of the issuer, and IAM needs an OIDC provider with the issuer's URL and the audience.",
  ],
  [/^MalformedPolicyDocument/, 'misconfigured', 'AWS STS does not accept a session policy of this backend.'],
  [
    /^AccessDenied/,
    'denied',
    'AWS STS does not let Mayfly assume the role: its trust policy must name the user of the access key, or the OIDC provider with the audience and the subject of this backend.',
  ],
  [/^NoSuchEntity/, 'misconfigured', 'The role does not exist.'],
  [/^RegionDisabled/, 'misconfigured', 'STS is not activated in this region for the account.'],
]

function faultOf(status: number, text: string): BackendError {
  const code = partOf(text, 'Code') ?? ''
  const message = partOf(text, 'Message') ?? ''
  const detail = `${status} ${code}: ${message}`
  if (code === 'ValidationError' && /DurationSeconds/.test(message)) {
    return new BackendError('unsupported', 'The role permits shorter sessions only; request a shorter ttl.', {
      detail,
    })
  }
  const found = FAULTS.find(([pattern]) => pattern.test(code))
  if (found !== undefined) return new BackendError(found[1], found[2], { detail })
  if (status === 429 || status >= 500)
    return new BackendError('unavailable', 'AWS STS cannot answer now.', { detail })
  return new BackendError('denied', 'AWS STS refused the request.', { detail })
}

function sessionOf(text: string): Session {
  const [accessKeyId, secretAccessKey, sessionToken, expiration] = [
    'AccessKeyId',
    'SecretAccessKey',
    'SessionToken',
    'Expiration',
  ].map((name) => partOf(text, name))
  const expiresAt = Date.parse(expiration ?? '')
  if (!accessKeyId || !secretAccessKey || !sessionToken || Number.isNaN(expiresAt)) {
    throw new BackendError('unavailable', 'The reply is not one of AWS STS.')
  }
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt }
}

/** The text of the first element of that name. The elements that we read hold neither others nor entities but these. */
function partOf(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return text?.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: keyof typeof ENTITIES) => ENTITIES[entity])
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
