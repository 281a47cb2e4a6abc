import { unsupported } from '../domain/backend-error.ts'
import { MAX_JWT_BYTES } from '../domain/limits.ts'
import type { Issued, IssueRequest } from './kind.ts'

/** Shared by kinds that state an expiry, or sign a token themselves. */

/** The expiry in seconds, rounded down: no credential outlives its request. Throws `unsupported` for less than one. `what`: "a JWT". */
export function wholeSeconds({ issuedAt, expiresAt }: IssueRequest<unknown>, what: string): number {
  const seconds = Math.floor(expiresAt / 1000)
  if (seconds * 1000 > issuedAt) return seconds
  throw unsupported(`The agent expires within a second, which ${what} cannot express.`)
}

/** States when the upstream ends the credential, in epoch ms, if that is not the requested expiry. */
export function endingAt(until: number, expiresAt: number): Pick<Issued, 'upstreamExpiresAt'> {
  return until === expiresAt ? {} : { upstreamExpiresAt: until }
}

/** Throws `unsupported` for a token that a header could not carry. */
export function requireShort(token: string): string {
  if (token.length <= MAX_JWT_BYTES) return token
  throw unsupported(`The token would be longer than ${MAX_JWT_BYTES} bytes; request fewer scopes.`)
}
