import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { isObject } from '../domain/formats/json.ts'
import { decodeBase64url } from './base64url.ts'
import { isEd25519Point } from './curve25519-point.ts'
import { thumbprint } from './thumbprint.ts'

interface OkpJwk<Curve extends string> {
  readonly kty: 'OKP'
  readonly crv: Curve
  readonly x: string
}

interface EcJwk {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
}

/** Required members only; the point is checked to be on the curve. */
export type SigningJwk = EcJwk | OkpJwk<'Ed25519'>
export type EncryptionJwk = EcJwk | OkpJwk<'X25519'>

const MEMBERS = new Set(['kty', 'crv', 'x', 'y', 'kid', 'alg', 'use'])
const MAX_KID_LENGTH = 128

/**
 * Checks a key to enroll: Ed25519 or P-256, a valid point, no private members, and no members besides
 * `kty crv x y kid alg use`. Returns only the required members; `undefined` for an invalid key.
 */
export function checkPublicJwk(jwk: unknown): { jwk: SigningJwk; thumbprint: string } | undefined {
  if (!isObject(jwk)) return undefined
  const key = jwk['kty'] === 'EC' ? readEc(jwk) : readOkp(jwk, 'Ed25519')
  const algorithms = key?.kty === 'EC' ? ['ES256'] : ['EdDSA', 'Ed25519']
  if (key === undefined || !isFor(jwk, 'sig', algorithms) || !isSigningPoint(key)) return undefined
  return { jwk: key, thumbprint: thumbprint({ ...key }) }
}

/** Checks a key to encrypt an answer to: X25519 or P-256, by the same rules. */
export function checkEncryptionJwk(jwk: unknown): EncryptionJwk | undefined {
  if (!isObject(jwk)) return undefined
  const key = jwk['kty'] === 'EC' ? readEc(jwk) : readOkp(jwk, 'X25519')
  return key !== undefined && isFor(jwk, 'enc', ['ECDH-ES']) && isAgreementPoint(key) ? key : undefined
}

function readEc({ kty, crv, x, y }: Record<string, unknown>): EcJwk | undefined {
  return kty === 'EC' && crv === 'P-256' && isCoordinate(x) && isCoordinate(y)
    ? { kty, crv, x, y }
    : undefined
}

function readOkp<Curve extends string>(
  { kty, crv, x, y }: Record<string, unknown>,
  curve: Curve,
): OkpJwk<Curve> | undefined {
  return kty === 'OKP' && crv === curve && isCoordinate(x) && y === undefined
    ? { kty, crv: curve, x }
    : undefined
}

/** All three curves have coordinates of 32 bytes, with leading zeros (RFC 7518 §6.2.1.2). */
function isCoordinate(value: unknown): value is string {
  return typeof value === 'string' && value.length === 43 && decodeBase64url(value) !== undefined
}

/** Optional members must match the purpose, and there must be no others. */
function isFor(jwk: Record<string, unknown>, purpose: string, algorithms: readonly unknown[]): boolean {
  const { alg, use, kid } = jwk
  return (
    Object.keys(jwk).every((name) => MEMBERS.has(name)) &&
    (alg === undefined || algorithms.includes(alg)) &&
    (use === undefined || use === purpose) &&
    (kid === undefined || (typeof kid === 'string' && kid.length <= MAX_KID_LENGTH))
  )
}

/** OpenSSL refuses a P-256 point off the curve, but accepts any 32 bytes for Ed25519. */
function isSigningPoint(key: SigningJwk): boolean {
  return (
    importPoint(key) !== undefined && (key.kty === 'EC' || isEd25519Point(Buffer.from(key.x, 'base64url')))
  )
}

/** With a point of small order every shared secret is zero (RFC 7748 §6.1); OpenSSL refuses the agreement. */
function isAgreementPoint(key: EncryptionJwk): boolean {
  const publicKey = importPoint(key)
  if (publicKey === undefined || key.kty === 'EC') return publicKey !== undefined
  const { privateKey } = generateKeyPairSync('x25519')
  try {
    diffieHellman({ privateKey, publicKey })
    return true
  } catch {
    return false
  }
}

function importPoint(key: SigningJwk | EncryptionJwk): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...key }, format: 'jwk' })
  } catch {
    return undefined
  }
}
