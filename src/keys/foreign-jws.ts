import { compactVerify, errors, type JWK } from 'jose'
import { isObject } from '../domain/formats/json.ts'
import { parseStrictText } from '../domain/formats/strict-json.ts'
import { type Claims, IdentityRefused } from '../domain/identity/identity.ts'
import { MAX_FOREIGN_JWT_BYTES } from '../domain/limits.ts'
import { Problem } from '../domain/problems.ts'
import { decodeBase64url } from './base64url.ts'

/** RFC 7518 §3.1; RFC 9864 renames EdDSA over Ed25519. */
export const FOREIGN_ALGORITHMS = ['RS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'] as const
export type ForeignAlgorithm = (typeof FOREIGN_ALGORITHMS)[number]

/** The members that make a public key, and no others. */
export type ForeignJwk = Readonly<Pick<JWK, 'kty' | 'crv' | 'n' | 'e' | 'x' | 'y'>>

/** A token of somebody else, read and not verified. */
export interface ForeignJws {
  readonly alg: ForeignAlgorithm
  readonly kid: string | undefined
  readonly claims: Claims
  /** `header.payload`, which the signature covers: it identifies a token, whose text has several valid signatures. */
  readonly signedPart: string
}

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const MAX_KID_LENGTH = 255
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Members that change what is signed (`crit`, `b64`), and that bring a key or say where one is. `x5c`, `x5t` and all others
 * are ignored: GitHub and Azure send `x5t`, and only `kid` chooses a key.
 */
const REFUSED_MEMBERS = ['crit', 'b64', 'jwk', 'jku', 'x5u']
/**
 * Types of tokens that say who somebody is: JWTs, those of SPIFFE (JWT-SVID §2.3), and access tokens (RFC 9068). Another
 * type says that the token is for something else, such as a logout (RFC 8725 §3.11), or needs a proof, as a WIT-SVID does.
 */
const TYPES = ['jwt', 'jose', 'at+jwt']

/**
 * Reads a compact JWS that somebody else signed: three canonical base64url parts of at most 16 KiB, header and payload JSON
 * objects without a repeated member. Throws `IdentityRefused`: `malformed` or `algorithm`.
 */
export function readForeignJws(token: string): ForeignJws {
  if (token.length > MAX_FOREIGN_JWT_BYTES) throw malformed('it is longer than 16 KiB')
  if (!COMPACT.test(token)) throw malformed('it is not three parts of base64url')
  const parts = token.split('.')
  const [head, payload, signature] = parts.map(decodeBase64url)
  if (head === undefined || payload === undefined || signature === undefined)
    throw malformed('a part is not canonical base64url')
  const header = readObject(head, 'header')
  const { alg, kid, typ } = header
  const member = REFUSED_MEMBERS.find((name) => Object.hasOwn(header, name))
  if (member !== undefined) throw malformed(`its header has the member ${member}`)
  if (!isAlgorithm(alg)) throw new IdentityRefused('algorithm')
  if (kid !== undefined && (typeof kid !== 'string' || kid === '' || kid.length > MAX_KID_LENGTH))
    throw malformed('its header has a kid that is not text of at most 255 characters')
  if (typ !== undefined && (typeof typ !== 'string' || !TYPES.includes(typ.toLowerCase())))
    throw malformed('its header has a typ that is not JWT, JOSE or at+jwt')
  const claims = readObject(payload, 'payload')
  // RFC 7800: only the holder of a key may use it, and no proof comes with it here.
  if (Object.hasOwn(claims, 'cnf')) throw malformed('it is bound to a key (cnf)')
  return { alg, kid, claims, signedPart: parts.slice(0, 2).join('.') }
}

/**
 * Whether the token is signed with this key, which fits its `alg`. Pass the same `jwk` object each time: jose keeps the
 * imported form of it.
 */
export async function isSignedBy(token: string, { alg }: ForeignJws, jwk: ForeignJwk): Promise<boolean> {
  try {
    await compactVerify(token, jwk as JWK, { algorithms: [alg] })
    return true
  } catch (error) {
    if (error instanceof errors.JOSEError) return false
    // A key that cannot be imported, such as a point that is not on the curve.
    if (error instanceof TypeError || error instanceof DOMException) return false
    throw error
  }
}

function readObject(bytes: Buffer, part: string): Record<string, unknown> {
  const value = parse(bytes, part)
  if (!isObject(value)) throw malformed(`its ${part} is not a JSON object`)
  return value
}

function parse(bytes: Buffer, part: string): unknown {
  try {
    return parseStrictText(utf8.decode(bytes))
  } catch (error) {
    if (error instanceof Problem || error instanceof TypeError)
      throw malformed(`its ${part} is not JSON, or has a member twice`)
    throw error
  }
}

const isAlgorithm = (alg: unknown): alg is ForeignAlgorithm => FOREIGN_ALGORITHMS.some((one) => one === alg)

const malformed = (detail: string) => new IdentityRefused('malformed', [], detail)
