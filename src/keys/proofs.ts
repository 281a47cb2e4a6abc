import { createPublicKey } from 'node:crypto'
import { CompactEncrypt, type JWTVerifyOptions, jwtVerify } from 'jose'
import { JWT_TOLERANCE_MS, MINUTE_MS, PROOF_AGE_MS } from '../domain/limits.ts'
import { isAudience, isNumericDate, readStrictHeader } from './compact-jws.ts'
import { checkEncryptionJwk, checkPublicJwk, type EncryptionJwk } from './public-jwk.ts'

export interface VerifiedAssertion {
  /** Single use: to be remembered until `rememberUntil`. The token's text identifies nothing. */
  readonly jti: string
  /** Epoch ms. */
  readonly expiresAt: number
  /** Epoch ms from which the assertion is refused by its age alone. */
  readonly rememberUntil: number
}

export interface VerifiedProof {
  readonly enrollmentId: string
  /** Single use: to be remembered until `rememberUntil`. */
  readonly jti: string
  /** Epoch ms. */
  readonly issuedAt: number
  /** Epoch ms from which the proof is refused by its age alone. */
  readonly rememberUntil: number
  /** The agent's ephemeral key for the answer. */
  readonly enc: EncryptionJwk
}

const MAX_ASSERTION_MS = 5 * MINUTE_MS
const MAX_JTI_LENGTH = 128
const MIN_PROOF_JTI_LENGTH = 8
/** Both are signed by one key: a token that says it is the one is never taken for the other. */
const ASSERTION_TYPES = ['jwt', 'client-authentication+jwt']
const PROOF_TYPES = ['jwt', 'enrollment-proof+jwt']

/**
 * A `private_key_jwt` client assertion (RFC 7523 §3) by the enrolled key and no other. `audiences` are the
 * issuer and the token endpoint, `now` is epoch ms. `undefined` for whatever is wrong; never throws.
 */
export async function verifyAssertion(
  token: string,
  publicJwk: unknown,
  expect: { readonly clientId: string; readonly audiences: readonly string[]; readonly now: number },
): Promise<VerifiedAssertion | undefined> {
  const { clientId, audiences, now } = expect
  const claims = await verifyByEnrolledKey(token, publicJwk, ASSERTION_TYPES, {
    issuer: clientId,
    subject: clientId,
    audience: [...audiences],
    requiredClaims: ['exp', 'jti'],
    currentDate: new Date(now),
  })
  if (claims === undefined) return undefined
  const { iss, aud, exp, iat, nbf, jti } = claims
  if (iss !== clientId || !isAudience(aud) || !isJti(jti, 1) || !isNumericDate(exp)) return undefined
  const expiresAt = exp * 1000
  if (expiresAt > now + MAX_ASSERTION_MS + JWT_TOLERANCE_MS) return undefined
  if (!isPastOrAbsent(iat, now) || !isPastOrAbsent(nbf, now)) return undefined
  return { jti, expiresAt, rememberUntil: expiresAt + JWT_TOLERANCE_MS }
}

/**
 * A proof of possession for the pick-up of an enrollment (header `Enrollment-Proof`), by the enrolled key and
 * no other. `now` is epoch ms. `undefined` for whatever is wrong; never throws.
 */
export async function verifyEnrollmentProof(
  token: string,
  publicJwk: unknown,
  expect: { readonly issuer: string; readonly enrollmentId: string; readonly now: number },
): Promise<VerifiedProof | undefined> {
  const { issuer, enrollmentId, now } = expect
  const claims = await verifyByEnrolledKey(token, publicJwk, PROOF_TYPES, {
    audience: issuer,
    requiredClaims: ['enr', 'iat', 'jti', 'enc'],
    currentDate: new Date(now),
  })
  if (claims === undefined) return undefined
  const { aud, enr, iat, jti } = claims
  if (aud !== issuer || enr !== enrollmentId || !isJti(jti, MIN_PROOF_JTI_LENGTH)) return undefined
  if (!isNumericDate(iat)) return undefined
  const issuedAt = iat * 1000
  if (Math.abs(issuedAt - now) > PROOF_AGE_MS) return undefined
  const enc = checkEncryptionJwk(claims['enc'])
  if (enc === undefined) return undefined
  return { enrollmentId, jti, issuedAt, rememberUntil: issuedAt + PROOF_AGE_MS + 1, enc }
}

async function verifyByEnrolledKey(
  token: string,
  publicJwk: unknown,
  types: readonly string[],
  options: JWTVerifyOptions,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const header = readStrictHeader(token)
  const enrolled = header === undefined ? undefined : checkPublicJwk(publicJwk)
  if (header === undefined || enrolled === undefined) return undefined
  // `typ` is compared without case (RFC 7515 §4.1.9). RFC 9864 renames EdDSA over this curve to Ed25519.
  if (header.typ !== undefined && !types.includes(header.typ.toLowerCase())) return undefined
  const algorithms = enrolled.jwk.kty === 'EC' ? ['ES256'] : ['EdDSA', 'Ed25519']
  try {
    const key = createPublicKey({ key: { ...enrolled.jwk }, format: 'jwk' })
    const checks = { ...options, algorithms, clockTolerance: JWT_TOLERANCE_MS / 1000 }
    return (await jwtVerify(token, key, checks)).payload
  } catch {
    return undefined
  }
}

/** Printable ASCII: what is stored to be remembered holds no NUL and no lone surrogate. */
function isJti(value: unknown, shortest: number): value is string {
  return (
    typeof value === 'string' &&
    value.length >= shortest &&
    value.length <= MAX_JTI_LENGTH &&
    /^[!-~]+$/.test(value)
  )
}

function isPastOrAbsent(value: unknown, now: number): boolean {
  return value === undefined || (isNumericDate(value) && value * 1000 <= now + JWT_TOLERANCE_MS)
}

/**
 * The answer as a compact JWE (`ECDH-ES`, `A256GCM`) that the holder of `enc` alone can read. Throws `Error`
 * when `enc` is not a key that `verifyEnrollmentProof` would give.
 */
export async function sealAnswer(payload: object, enc: EncryptionJwk): Promise<string> {
  const jwk = checkEncryptionJwk(enc)
  if (jwk === undefined) throw new Error('not a public key that an answer can be encrypted to')
  return await new CompactEncrypt(Buffer.from(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .encrypt(createPublicKey({ key: { ...jwk }, format: 'jwk' }))
}
