import { isObject, parseJson } from '../../domain/formats/json.ts'
import { CliError, EXIT } from '../frame/failure.ts'

/** The longest token that the server takes. */
export const MAX_TOKEN_BYTES = 16 * 1024

/** Three parts (RFC 7515 §7.1): no JWT without a signature. */
const JWT = /^[\w-]+\.([\w-]+)\.[\w-]+$/

/** The claims of a signed JWT, of which nothing is verified; undefined for any other text. */
export function claimsIn(token: string): Readonly<Record<string, unknown>> | undefined {
  const payload = token.length > MAX_TOKEN_BYTES ? undefined : JWT.exec(token)?.[1]
  if (payload === undefined) return undefined
  const claims = parseJson(Buffer.from(payload, 'base64url').toString('utf8'))
  return isObject(claims) ? claims : undefined
}

/**
 * The token, if it is a JWT for this audience and no other. A server to which a token for another one is sent could use it
 * there. Throws `CliError`.
 */
export function checkToken(title: string, text: string, audience: string): string {
  const token = text.trim()
  const claims = claimsIn(token)
  if (claims === undefined)
    throw unusable(`What ${title} gave is not a signed JWT of at most 16 KiB.`, undefined)
  const { aud } = claims
  const only = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  if (typeof only === 'string' && withoutSlash(only) === withoutSlash(audience)) return token
  const whose = aud === undefined ? 'nobody in particular' : JSON.stringify(aud).slice(0, 200)
  throw unusable(
    `The token of ${title} is for ${whose}, not for ${JSON.stringify(audience)} alone; it was not sent.`,
    'Have it made for the address of the server, or name its audience with `mayfly login --identity NAME --audience A`.',
  )
}

/** An address is the same with a slash at its end. */
const withoutSlash = (text: string) => text.replace(/\/+$/, '')

/** Claims that differ from token to token of the same workload. */
const PASSING = new Set(['exp', 'iat', 'nbf', 'jti'])

/** What all tokens of the same workload have in common. */
export function workloadOf(token: string): string {
  const claims = claimsIn(token.trim())
  if (claims === undefined) return token
  const lasting = Object.entries(claims).filter(([name]) => !PASSING.has(name))
  return JSON.stringify(lasting.sort(([one], [other]) => (one < other ? -1 : 1)))
}

const unusable = (message: string, hint: string | undefined) =>
  new CliError('identity_unusable', message, { exit: EXIT.unauthenticated, hint })
