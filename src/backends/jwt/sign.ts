import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  hash,
  type JsonWebKey,
  type KeyObject,
  sign as signWith,
} from 'node:crypto'
import { promisify } from 'node:util'
import { misconfigured } from '../../domain/backend-error.ts'
import { requiredMembers } from '../../domain/formats/jwk.ts'

export type Algorithm = 'ES256' | 'EdDSA' | 'RS256'

const generate = promisify(generateKeyPair)
/** This many signatures keep the thread pool busy while the event loop goes on. */
const MAX_BATCH = 16

const RSA_BITS = 2048

export interface Signer {
  /** RFC 7517, with `kid` (RFC 7638), `use` and `alg`. */
  readonly publicJwk: Readonly<Record<string, unknown>> & { readonly kid: string }
  /** Returns a compact JWS. `payload` is JSON text. Signs on the thread pool, so that the event loop goes on. */
  sign(payload: string): Promise<string>
}

/** Returns a new private key as JWK text. */
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
  const members = requiredMembers({ ...createPublicKey(key).export({ format: 'jwk' }) })
  const kid = hash('sha256', JSON.stringify(members), 'base64url')
  const header = encode(JSON.stringify({ alg: algorithm, typ: 'at+jwt', kid }))
  const signOnPool = createPoolSigner(algorithm === 'EdDSA' ? null : 'sha256', key)
  return {
    publicJwk: { ...members, kid, use: 'sig', alg: algorithm },
    async sign(payload) {
      const input = `${header}.${encode(payload)}`
      const signature = await signOnPool(Buffer.from(input, 'latin1'))
      return `${input}.${(algorithm === 'ES256' ? joinIntegers(signature) : signature).toString('base64url')}`
    },
  }
}

/**
 * Hands the signatures of one event loop iteration to the thread pool together. Handing over wakes a sleeping thread,
 * which costs the event loop as much as a quarter of an issue; threads that are awake take the rest.
 */
function createPoolSigner(digest: string | null, key: KeyObject): (data: Buffer) => Promise<Buffer> {
  let waiting: (() => void)[] = []
  const start = () => {
    const all = waiting
    waiting = []
    for (const one of all) one()
  }
  return promisify((data: Buffer, done: (error: Error | null, signature: Buffer) => void) => {
    if (waiting.length === 0) setImmediate(start)
    waiting.push(() => signWith(digest, data, key, done))
    if (waiting.length >= MAX_BATCH) start()
  })
}

const P256_BYTES = 32

/**
 * Converts OpenSSL's DER (RFC 3279 §2.2.3) into r and s side by side, the form of JWS (RFC 7518 §3.4). Node's own
 * `dsaEncoding: 'ieee-p1363'` does the same but takes as long again as the signature itself.
 */
function joinIntegers(der: Buffer): Buffer {
  const joined = Buffer.alloc(2 * P256_BYTES)
  let at = 2
  for (const end of [P256_BYTES, 2 * P256_BYTES]) {
    const length = der[at + 1] ?? 0
    const next = at + 2 + length
    // DER prepends a zero to a number with a high bit, and shortens a small one.
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
  const wrong = misconfigured(`"signing_key" is not a private ${algorithm} key in JWK form.`)
  let key: KeyObject
  try {
    key = createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' })
  } catch {
    // No cause: a parser's message may quote the key.
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
