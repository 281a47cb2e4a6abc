import { type BackendError, misconfigured, unavailable } from '../../domain/backend-error.ts'
import type { Host } from '../kind.ts'
import { type Config, endpointOf } from './config.ts'
import { type Answer, codeOf, type Fault, faultOf, partOf, post, postSigned } from './query.ts'
import { NOTHING } from './scopes.ts'

/** AWS STS API Reference, "AssumeRole", DurationSeconds. A role may permit less than twelve hours. */
export const SHORTEST_S = 900
export const LONGEST_S = 43_200

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
  const answer =
    settings.access_key_id === undefined
      ? await withIdToken(settings, host, form, signal)
      : await withAccessKey(settings, host, form, signal)
  if (!answer.ok) throw refusalOf(answer)
  return sessionOf(answer.text)
}

/** A session that may do nothing, received by nobody. Throws `BackendError`. */
export async function tryRole(settings: Config, host: Host, signal: AbortSignal): Promise<void> {
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: NOTHING })
  await assumeRole(settings, host, { name: 'mayfly-check', seconds: SHORTEST_S, policy }, signal)
}

/** AWS STS API Reference, "AssumeRoleWithWebIdentity": no signature, the token is the proof. */
async function withIdToken(settings: Config, host: Host, form: URLSearchParams, signal: AbortSignal) {
  if (settings.external_id !== undefined) throw misconfigured('"external_id" needs an access key.')
  form.set('Action', 'AssumeRoleWithWebIdentity')
  const audience = settings.audience ?? 'sts.amazonaws.com'
  const subject = `backend/${host.name}`
  form.set('WebIdentityToken', await host.idToken({ audience, subject, expiresAt: host.now() + 300_000 }))
  return post(settings, host, { url: endpointOf(settings), body: form.toString() }, signal)
}

async function withAccessKey(settings: Config, host: Host, form: URLSearchParams, signal: AbortSignal) {
  form.set('Action', 'AssumeRole')
  if (settings.external_id !== undefined) form.set('ExternalId', settings.external_id)
  const at = { url: endpointOf(settings), service: 'sts', region: settings.region } as const
  return postSigned(settings, host, at, form, signal)
}

/**
 * AWS STS API Reference, "Common Errors" and the errors of the two actions. Nothing is made upstream but a session, which nobody
 * has received.
 */
const FAULTS: readonly Fault[] = [
  [
    /^PackedPolicyTooLarge/,
    'unsupported',
    'These scopes make a session policy that AWS finds too large; request fewer.',
  ],
  [/^IDPCommunicationError/, 'unavailable', 'AWS STS cannot reach the issuer of the id token.'],
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

function refusalOf(answer: Answer): BackendError {
  const { text } = answer
  if (codeOf(answer) === 'ValidationError' && /DurationSeconds/.test(partOf(text, 'Message') ?? '')) {
    const message = 'The role permits shorter sessions only; request a shorter ttl.'
    return faultOf(answer, 'AWS STS', [[/./, 'unsupported', message]])
  }
  return faultOf(answer, 'AWS STS', FAULTS)
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
    throw unavailable('The reply is not one of AWS STS.')
  }
  return { accessKeyId, secretAccessKey, sessionToken, expiresAt }
}
