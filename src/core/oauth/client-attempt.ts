import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { invalid } from '../../domain/problems.ts'
import { unverifiedPart } from './unverified-jwt.ts'

export type ClientMethod = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** The client authentication of a request to `/oauth/*`. */
export interface PresentedClient {
  readonly authorization?: string | undefined
  readonly client_id?: string | undefined
  readonly client_secret?: string | undefined
  readonly client_assertion?: string | undefined
  readonly client_assertion_type?: string | undefined
}

/** One method of client authentication, read but not checked. */
export interface ClientAttempt {
  readonly method: ClientMethod
  readonly clientId: string
  /** The secret, or the assertion. */
  readonly evidence: string
}

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * RFC 6749 §2.3: exactly one method in a request. Throws `invalid_request` for several or for half of one, and
 * `invalid_client` for none.
 */
export function readClientAttempt(presented: PresentedClient): ClientAttempt {
  const { authorization, client_id, client_secret, client_assertion, client_assertion_type } = presented
  const hasAssertion = client_assertion !== undefined || client_assertion_type !== undefined
  const methods = [authorization !== undefined, client_secret !== undefined, hasAssertion]
  const count = methods.filter(Boolean).length
  if (count > 1) throw invalid('Use one method of client authentication.')
  if (count === 0) throw new OAuthProblem('invalid_client', 'Client authentication is missing.')
  if (authorization !== undefined) return readBasic(authorization, client_id)
  if (client_secret !== undefined) {
    if (client_id === undefined) throw invalid('"client_id" is missing.')
    return { method: 'client_secret_post', clientId: client_id, evidence: client_secret }
  }
  if (client_assertion === undefined || client_assertion_type === undefined)
    throw invalid('"client_assertion" and "client_assertion_type" must be given together.')
  if (client_assertion_type !== JWT_BEARER)
    throw new OAuthProblem('invalid_client', 'This type of client assertion is not supported.')
  return readAssertion(client_assertion, client_id)
}

/** RFC 6749 §2.3.1: both parts are form-urlencoded before they are joined and encoded. */
function readBasic(authorization: string, bodyClientId: string | undefined): ClientAttempt {
  const encoded = BASIC.exec(authorization)?.[1]
  const text = encoded === undefined ? undefined : decodeBase64(encoded)
  const colon = text?.indexOf(':') ?? -1
  const clientId = text === undefined || colon < 1 ? undefined : decodeFormText(text.slice(0, colon))
  const secret = text === undefined || colon < 1 ? undefined : decodeFormText(text.slice(colon + 1))
  if (clientId === undefined || secret === undefined)
    throw new OAuthProblem('invalid_client', 'The Authorization header is not valid Basic authentication.')
  if (bodyClientId !== undefined && bodyClientId !== clientId)
    throw invalid('"client_id" differs from the client in the Authorization header.')
  return { method: 'client_secret_basic', clientId, evidence: secret }
}

function decodeBase64(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64')
  // Node skips invalid characters: only canonical text, padded or not, survives the round trip.
  if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

function decodeFormText(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '))
    return /\p{Cc}/u.test(decoded) ? undefined : decoded
  } catch {
    return undefined
  }
}

/** RFC 7521 §4.2: `client_id` is optional; if it is given, it must be the subject. */
function readAssertion(assertion: string, bodyClientId: string | undefined): ClientAttempt {
  const subject = unverifiedPart(assertion, 1)?.['sub']
  const clientId = bodyClientId ?? (typeof subject === 'string' ? subject : '')
  return { method: 'private_key_jwt', clientId, evidence: assertion }
}
