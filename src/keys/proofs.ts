import { createPublicKey } from 'node:crypto'
import { CompactEncrypt, type JWK, type JWTVerifyOptions, jwtVerify } from 'jose'
import { JWT_TOLERANCE_MS, MINUTE_MS, PROOF_AGE_MS } from '../domain/limits.ts'
import { isNumericDate, isText, readStrictHeader } from './compact-jws.ts'
import type { PublicJwk } from './jwt-keys.ts'
import { checkEncryptionJwk, type EncryptionJwk } from './public-jwk.ts'

export interface VerifiedAssertion {
  /** Single use: remember it until `rememberUntil`. The token's text identifies nothing. */
  readonly jti: string
  /** Epoch ms. */
  readonly expiresAt: number
  /** Epoch ms after which the assertion is too old in any case. */
  readonly rememberUntil: number
}

export interface VerifiedProof {
  readonly enrollmentId: string
  /** Single use: remember it until `rememberUntil`. */
  readonly jti: string
  /** Epoch ms. */
  readonly issuedAt: number
  /** Epoch ms after which the proof is too old in any case. */
  readonly rememberUntil: number
  /** The agent's ephemeral key for the answer. */
  readonly enc: EncryptionJwk
}

const MAX_ASSERTION_MS = 5 * MINUTE_MS
const MAX_JTI_LENGTH = 128
const MIN_PROOF_JTI_LENGTH = 8
/** One key signs both kinds of token; `typ` keeps them apart. */
const ASSERTION_TYPES = ['jwt', 'client-authentication+jwt']
const PROOF_TYPES = ['jwt', 'enrollment-proof+jwt']

/**
 * Verifies a `private_key_jwt` client assertion (RFC 7523 §3) by the enrolled key, which `checkPublicJwk` accepted when
 * it was enrolled. `audiences` are those of this server, `now` is epoch ms. An assertion must name one audience: with
 * several, each could use it at the others. Returns `undefined` for an invalid assertion; never throws.
 */
export async function verifyAssertion(
  token: string,
  publicJwk: PublicJwk,
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
  if (iss !== clientId || !isText(aud) || !isJti(jti, 1) || !isNumericDate(exp)) return undefined
  const expiresAt = exp * 1000
  if (expiresAt > now + MAX_ASSERTION_MS + JWT_TOLERANCE_MS) return undefined
  if (!isPastOrAbsent(iat, now) || !isPastOrAbsent(nbf, now)) return undefined
  return { jti, expiresAt, rememberUntil: expiresAt + JWT_TOLERANCE_MS }
}

/**
 * Verifies a proof of possession for collecting an enrollment (header `Enrollment-Proof`), by the enrolled key. `now`
 * is epoch ms. Returns `undefined` for an invalid proof; never throws.
 */
export async function verifyEnrollmentProof(
  token: string,
  publicJwk: PublicJwk,
  expect: { readonly audiences: readonly string[]; readonly enrollmentId: string; readonly now: number },
): Promise<VerifiedProof | undefined> {
  const { audiences, enrollmentId, now } = expect
  const claims = await verifyByEnrolledKey(token, publicJwk, PROOF_TYPES, {
    audience: [...audiences],
    requiredClaims: ['enr', 'iat', 'jti', 'enc'],
    currentDate: new Date(now),
  })
  if (claims === undefined) return undefined
  const { aud, enr, iat, jti } = claims
  if (!isText(aud) || enr !== enrollmentId || !isJti(jti, MIN_PROOF_JTI_LENGTH)) return undefined
  if (!isNumericDate(iat)) return undefined
  const issuedAt = iat * 1000
  if (Math.abs(issuedAt - now) > PROOF_AGE_MS) return undefined
  const enc = checkEncryptionJwk(claims['enc'])
  if (enc === undefined) return undefined
  return { enrollmentId, jti, issuedAt, rememberUntil: issuedAt + PROOF_AGE_MS + 1, enc }
}

async function verifyByEnrolledKey(
  token: string,
  publicJwk: PublicJwk,
  types: readonly string[],
  options: JWTVerifyOptions,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const header = readStrictHeader(token)
  if (header === undefined) return undefined
  // `typ` is compared without case (RFC 7515 §4.1.9). RFC 9864 renames EdDSA over this curve to Ed25519.
  if (header.typ !== undefined && !types.includes(header.typ.toLowerCase())) return undefined
  const algorithms = publicJwk['kty'] === 'EC' ? ['ES256'] : ['EdDSA', 'Ed25519']
  try {
    const checks = { ...options, algorithms, clockTolerance: JWT_TOLERANCE_MS / 1000 }
    return (await jwtVerify(token, publicJwk as JWK, checks)).payload
  } catch {
    return undefined
  }
}

/** Printable ASCII: the store must never receive a NUL or a lone surrogate. */
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
 * Encrypts the answer as a compact JWE (`ECDH-ES`, `A256GCM`) to the holder of `enc`. Throws `Error` if `enc` is not a
 * key that `verifyEnrollmentProof` returns.
 */
export async function sealAnswer(payload: object, enc: EncryptionJwk): Promise<string> {
  const jwk = checkEncryptionJwk(enc)
  if (jwk === undefined) throw new Error('the key cannot be used to encrypt an answer')
  return await new CompactEncrypt(Buffer.from(JSON.stringify(payload)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .encrypt(createPublicKey({ key: { ...jwk }, format: 'jwk' }))
}
