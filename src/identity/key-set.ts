import { isObject } from '../domain/formats/json.ts'
import { decodeBase64url } from '../keys/base64url.ts'
import type { ForeignAlgorithm, ForeignJwk } from '../keys/foreign-jws.ts'

/** A key of an issuer that may sign tokens. */
export interface UsableKey {
  readonly kid: string | undefined
  readonly algorithms: readonly ForeignAlgorithm[]
  /** Its public members alone. */
  readonly jwk: ForeignJwk
}

/** RFC 7518 §3.3 needs 2048 bits. A longer modulus or exponent than these makes each check slow. */
const RSA_BYTES = { least: 256, most: 1_024 }
const MOST_EXPONENT_BYTES = 4
const CURVES: Readonly<Record<string, { readonly algorithm: ForeignAlgorithm; readonly bytes: number }>> = {
  'P-256': { algorithm: 'ES256', bytes: 32 },
  'P-384': { algorithm: 'ES384', bytes: 48 },
}
/** `jwt-svid` is SPIFFE's word in a trust bundle (SPIFFE Trust Domain and Bundle §4.2.1). */
const USES = ['sig', 'jwt-svid']

/**
 * The keys of a JWK set (RFC 7517 §5) that can sign tokens here. Others are left out, such as `x509-svid` of a trust bundle:
 * a set may have any. `undefined` where it is no JWK set.
 */
export function readKeySet(value: unknown): UsableKey[] | undefined {
  const keys = isObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys)) return undefined
  return keys.flatMap((key: unknown) => (isObject(key) ? (readKey(key) ?? []) : []))
}

/** The key that a token names; without a `kid`, the only one that fits. */
export function chooseKey(
  keys: readonly UsableKey[],
  { alg, kid }: { readonly alg: ForeignAlgorithm; readonly kid: string | undefined },
): UsableKey | undefined {
  const fitting = keys.filter(({ algorithms }) => algorithms.includes(alg))
  if (kid !== undefined) return fitting.find((key) => key.kid === kid)
  return fitting.length === 1 ? fitting[0] : undefined
}

function readKey(key: Readonly<Record<string, unknown>>): UsableKey | undefined {
  const { kid, use, alg, key_ops: operations } = key
  if (kid !== undefined && typeof kid !== 'string') return undefined
  if (use !== undefined && !USES.some((one) => one === use)) return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return undefined
  const found = readRsa(key) ?? readEc(key) ?? readEdwards(key)
  if (found === undefined || (alg !== undefined && !found.algorithms.some((one) => one === alg)))
    return undefined
  return { kid, ...found }
}

type Found = Omit<UsableKey, 'kid'> | undefined

function readRsa({ kty, n, e }: Readonly<Record<string, unknown>>): Found {
  if (kty !== 'RSA' || typeof n !== 'string' || typeof e !== 'string') return undefined
  const [modulus, exponent] = [significantBytes(n), significantBytes(e)]
  if (modulus < RSA_BYTES.least || modulus > RSA_BYTES.most) return undefined
  if (exponent === 0 || exponent > MOST_EXPONENT_BYTES) return undefined
  return { algorithms: ['RS256'], jwk: { kty, n, e } }
}

function readEc({ kty, crv, x, y }: Readonly<Record<string, unknown>>): Found {
  if (kty !== 'EC' || typeof crv !== 'string' || !Object.hasOwn(CURVES, crv)) return undefined
  const curve = CURVES[crv]
  if (curve === undefined || !isOfBytes(x, curve.bytes) || !isOfBytes(y, curve.bytes)) return undefined
  return { algorithms: [curve.algorithm], jwk: { kty, crv, x, y } }
}

function readEdwards({ kty, crv, x }: Readonly<Record<string, unknown>>): Found {
  if (kty !== 'OKP' || crv !== 'Ed25519' || !isOfBytes(x, 32)) return undefined
  return { algorithms: ['EdDSA', 'Ed25519'], jwk: { kty, crv, x } }
}

const isOfBytes = (value: unknown, bytes: number): value is string =>
  typeof value === 'string' && decodeBase64url(value)?.length === bytes

/** Without leading zeros; 0 for text that is not base64url. */
function significantBytes(text: string): number {
  const bytes = decodeBase64url(text) ?? Buffer.alloc(0)
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : bytes.length - first
}
