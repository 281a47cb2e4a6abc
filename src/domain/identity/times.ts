import { FOREIGN_TOLERANCE_MS } from '../limits.ts'
import { type Claims, IdentityRefused, type Refusal } from './identity.ts'

/** Epoch ms. */
export interface Times {
  readonly expiresAt: number
  readonly issuedAt: number | undefined
  readonly notBefore: number | undefined
}

/** The last second of the year 9999. */
const MAX_DATE = 253_402_300_799

/** A NumericDate (RFC 7519 §2), which may have a fraction, as epoch ms; `undefined` for anything else. */
export function readDate(value: unknown): number | undefined {
  return typeof value === 'number' && value > 0 && value <= MAX_DATE ? value * 1_000 : undefined
}

/** `undefined` where `exp` is missing, or a time is no date. */
export function readTimes({ exp, iat, nbf }: Claims): Times | undefined {
  const [expiresAt, issuedAt, notBefore] = [exp, iat, nbf].map(readDate)
  const isWhole =
    (iat === undefined || issuedAt !== undefined) && (nbf === undefined || notBefore !== undefined)
  return expiresAt === undefined || !isWhole ? undefined : { expiresAt, issuedAt, notBefore }
}

/** Why it is not time for the token; `undefined` when it is. `now` is epoch ms. */
export function requireCurrent({ expiresAt, issuedAt, notBefore }: Times, now: number): Refusal | undefined {
  if (now >= expiresAt + FOREIGN_TOLERANCE_MS) return 'expired'
  const begins = Math.max(notBefore ?? 0, issuedAt ?? 0)
  return begins > now + FOREIGN_TOLERANCE_MS ? 'not_yet_valid' : undefined
}

/**
 * Until when the token would be taken again, epoch ms. Where a token says nothing of its age (`iat` is optional in a JWT-SVID),
 * its end bounds it: what lives longer than `maxAgeMs` from now may be as old. Throws `IdentityRefused`: `too_old` or `malformed`.
 */
export function requireAge(
  { expiresAt, issuedAt }: Times,
  { maxAgeMs, mayLackIssuedAt }: { readonly maxAgeMs: number; readonly mayLackIssuedAt: boolean },
  now: number,
): number {
  const end = expiresAt + FOREIGN_TOLERANCE_MS
  if (issuedAt === undefined) {
    if (!mayLackIssuedAt) throw new IdentityRefused('malformed', [], 'there is no iat')
    if (end > now + maxAgeMs + FOREIGN_TOLERANCE_MS)
      throw new IdentityRefused('too_old', [], 'there is no iat, and it ends later than max_age from now')
    return end
  }
  if (now - issuedAt > maxAgeMs) throw new IdentityRefused('too_old')
  return Math.min(end, issuedAt + maxAgeMs + 1)
}
