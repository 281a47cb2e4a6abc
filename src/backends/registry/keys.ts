import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  hash,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { promisify } from 'node:util'
import { misconfigured } from '../../domain/backend-error.ts'
import { basicConstraints, certificateBody, ECDSA_SHA256, withSignature } from '../../domain/certificate.ts'
import { requiredMembers } from '../../domain/formats/jwk.ts'
import { DAY_MS } from '../../domain/limits.ts'

import { signAssertion } from '../assertion.ts'

const generate = promisify(generateKeyPair)
const signAsync = promisify(sign)
const VALIDITY_MS = 10 * 365 * DAY_MS

export interface Signer {
  /** RFC 7517, for registries that take a key set. */
  readonly publicJwk: Readonly<Record<string, unknown>>
  readonly kid: string
  /** Epoch ms. */
  readonly certificateEndsAt: number
  /** A compact JWS of these claims. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>
}

/** Returns a new private key as PEM. */
export async function generateKey(): Promise<string> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** The certificate that the registry keeps in `rootcertbundle`, as PEM. Throws `BackendError` for another kind of key. */
export async function selfSigned(signingKey: string, now: number): Promise<string> {
  const privateKey = readKey(signingKey)
  const body = certificateBody({
    serial: randomBytes(16),
    commonName: 'Mayfly registry tokens',
    from: now - DAY_MS,
    to: now + VALIDITY_MS,
    publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    algorithm: ECDSA_SHA256,
    extensions: [basicConstraints(true)],
  })
  const signature = await signAsync('sha256', body, privateKey)
  return new X509Certificate(withSignature(body, ECDSA_SHA256, signature)).toString()
}

/** The certificate that is kept with a key. */
export function certificateIn(signingKey: string): string | undefined {
  const [pem] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(signingKey) ?? []
  return pem === undefined ? undefined : `${pem}\n`
}

/** Throws `BackendError` (`misconfigured`) when the key and the certificate do not belong together. */
export async function prepareSigner(signingKey: string, certificate: string): Promise<Signer> {
  const key = readKey(signingKey)
  const parsed = readCertificate(certificate)
  if (!parsed.checkPrivateKey(key)) {
    throw misconfigured('"certificate" is not one of "signing_key".')
  }
  const members = requiredMembers({ ...createPublicKey(key).export({ format: 'jwk' }) })
  const kid = hash('sha256', JSON.stringify(members), 'base64url')
  // RFC 7515 §4.1.6. Distribution 2 and 3 verify the chain up to `rootcertbundle`; 3 also knows keys by `kid`.
  const header = { alg: 'ES256', kid, x5c: [parsed.raw.toString('base64')] }
  return {
    kid,
    publicJwk: { ...members, kid, use: 'sig', alg: 'ES256' },
    certificateEndsAt: parsed.validToDate.getTime(),
    sign: (claims) => signAssertion(key, header, claims),
  }
}

function readKey(pem: string): KeyObject {
  const wrong = misconfigured('"signing_key" is not a private P-256 key as PEM.')
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    // No cause: a parser's message may quote the key.
    throw wrong
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw wrong
  return key
}

function readCertificate(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch (cause) {
    throw misconfigured('"certificate" is not a certificate as PEM.', { cause })
  }
}
