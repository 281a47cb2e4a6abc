import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type JsonWebKey,
  type KeyObject,
  sign as signWith,
} from 'node:crypto'
import { promisify } from 'node:util'
import { BackendError } from '../kind.ts'

export type Algorithm = 'ES256' | 'EdDSA' | 'RS256'

const generate = promisify(generateKeyPair)
const signAsync = promisify(
  (
    digest: string | null,
    data: Buffer,
    key: KeyObject,
    done: (error: Error | null, signature: Buffer) => void,
  ) => handOver(() => signWith(digest, data, key, done)),
)
/** So many signatures keep the pool busy while the rest of the event-loop iteration runs. */
const WORTH_WAKING = 16
let asked: (() => void)[] = []

/**
 * All signatures of one event-loop iteration go to the thread pool together: each hand-over wakes a sleeping thread, which
 * costs this one as much as a quarter of an issue, and threads that are awake take the rest.
 */
function handOver(start: () => void): void {
  if (asked.length === 0) setImmediate(letGo)
  asked.push(start)
  if (asked.length >= WORTH_WAKING) letGo()
}

function letGo(): void {
  const all = asked
  asked = []
  for (const one of all) one()
}

const RSA_BITS = 2048

export interface Signer {
  /** RFC 7517, with `kid` (RFC 7638), `use` and `alg`. */
  readonly publicJwk: Readonly<Record<string, unknown>> & { readonly kid: string }
  /** A compact JWS of a payload that is already JSON; signed in the thread pool, so that requests continue. */
  sign(payload: string): Promise<string>
}

/** A fresh private key as JWK text. */
export async function generateKey(algorithm: Algorithm): Promise<string> {
  const { privateKey } = await generatePair(algorithm)
  return JSON.stringify(privateKey.export({ format: 'jwk' }))
}

function generatePair(algorithm: Algorithm): Promise<{ privateKey: KeyObject }> {
  switch (algorithm) {
    case 'ES256':
      return generate('ec', { namedCurve: 'P-256' })
    case 'EdDSA':
      return generate('ed25519')
    case 'RS256':
      return generate('rsa', { modulusLength: RSA_BITS })
    default: {
      const never: never = algorithm
      return never
    }
  }
}

/** Throws `BackendError` (`misconfigured`) when the text is not a private JWK that fits the algorithm. */
export function prepareSigner(algorithm: Algorithm, privateJwk: string): Signer {
  const key = readKey(algorithm, privateJwk)
  const members = thumbprintMembers(createPublicKey(key).export({ format: 'jwk' }))
  const kid = createHash('sha256').update(JSON.stringify(members)).digest('base64url')
  const header = encode(JSON.stringify({ alg: algorithm, typ: 'at+jwt', kid }))
  return {
    publicJwk: { ...members, kid, use: 'sig', alg: algorithm },
    async sign(payload) {
      const input = `${header}.${encode(payload)}`
      const signature = await signAsync(
        algorithm === 'EdDSA' ? null : 'sha256',
        Buffer.from(input, 'latin1'),
        key,
      )
      return `${input}.${(algorithm === 'ES256' ? joinIntegers(signature) : signature).toString('base64url')}`
    },
  }
}

const P256_BYTES = 32

/**
 * r and s side by side, as JWS wants them (RFC 7518 §3.4), from OpenSSL's DER (RFC 3279 §2.2.3). Node's own
 * `dsaEncoding: 'ieee-p1363'` gives the same and takes as long again as the signature itself.
 */
function joinIntegers(der: Buffer): Buffer {
  const joined = Buffer.alloc(2 * P256_BYTES)
  let at = 2
  for (const end of [P256_BYTES, 2 * P256_BYTES]) {
    const length = der[at + 1] ?? 0
    const next = at + 2 + length
    // A high bit brings a zero in front; a small number is shorter.
    const start = Math.max(at + 2, next - P256_BYTES)
    der.copy(joined, end - (next - start), start, next)
    at = next
  }
  return joined
}

function encode(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

function readKey(algorithm: Algorithm, text: string): KeyObject {
  const wrong = new BackendError('misconfigured', `"signing_key" is not a private ${algorithm} key as JWK.`)
  let key: KeyObject
  try {
    key = createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' })
  } catch {
    // The cause is left out: a parser's message may quote the key.
    throw wrong
  }
  const { namedCurve, modulusLength } = key.asymmetricKeyDetails ?? {}
  const fits =
    algorithm === 'ES256'
      ? key.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1'
      : algorithm === 'EdDSA'
        ? key.asymmetricKeyType === 'ed25519'
        : key.asymmetricKeyType === 'rsa' && (modulusLength ?? 0) >= RSA_BITS
  if (!fits) throw wrong
  return key
}

/** The required members alone, in the order of their names (RFC 7638 §3.2). */
function thumbprintMembers(jwk: JsonWebKey): Record<string, unknown> {
  switch (jwk.kty) {
    case 'EC':
      return { crv: jwk.crv, kty: jwk.kty, x: jwk.x, y: jwk.y }
    case 'OKP':
      return { crv: jwk.crv, kty: jwk.kty, x: jwk.x }
    default:
      return { e: jwk.e, kty: jwk.kty, n: jwk.n }
  }
}
