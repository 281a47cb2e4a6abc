import type { Claims } from './identity.ts'

/** What a claim shows of the token, as JSON. */
export const MAX_CLAIM_BYTES = 4_096
const MAX_CLAIMS = 48
const MAX_DEPTH = 4
const MAX_SUBJECT = 1_024
/** They say nothing that helps to decide, or stand beside the claims. */
const PLAIN = new Set(['iss', 'sub', 'aud', 'exp', 'iat', 'nbf', 'jti'])

export interface ClaimMetadata {
  readonly platform: string
  readonly issuer: string
  readonly subject: string
  /** Those that fit. */
  readonly claims: Claims
  /** How many do not. */
  readonly claims_left_out?: number
}

/** What an administrator is shown of an agent that came in from a platform. All of it but the platform is what the token says. */
export function claimMetadata(
  platform: string,
  { issuer, subject, claims }: { readonly issuer: string; readonly subject: string; readonly claims: Claims },
): ClaimMetadata {
  const shown: [string, unknown][] = []
  let room = MAX_CLAIM_BYTES
  let leftOut = 0
  for (const [name, value] of Object.entries(claims)) {
    if (PLAIN.has(name)) continue
    const size = isShallow(value, MAX_DEPTH) ? bytesOf({ [name]: value }) : Number.POSITIVE_INFINITY
    if (size > room || shown.length >= MAX_CLAIMS) {
      leftOut += 1
      continue
    }
    room -= size
    shown.push([name, value])
  }
  return {
    platform,
    issuer,
    subject: subject.length > MAX_SUBJECT ? `${subject.slice(0, MAX_SUBJECT - 1).toWellFormed()}…` : subject,
    // Also a claim of the name `__proto__` stays a claim.
    claims: Object.fromEntries(shown),
    ...(leftOut === 0 ? {} : { claims_left_out: leftOut }),
  }
}

/** Checked before anything recursive reads it. */
function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1))
}

/** UTF-8; no `node:` here. Text of JSON has no lone surrogates. */
function bytesOf(value: unknown): number {
  let bytes = 0
  for (const character of JSON.stringify(value)) {
    const point = character.codePointAt(0) ?? 0
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
  }
  return bytes
}
