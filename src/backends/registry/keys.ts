import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  hash,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto'
import { promisify } from 'node:util'
import { BackendError } from '../../domain/backend-error.ts'
import { requiredMembers } from '../../domain/jwk.ts'
import { DAY_MS } from '../../domain/limits.ts'

const generate = promisify(generateKeyPair)
const VALIDITY_MS = 10 * 365 * DAY_MS
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

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
  // The ASN.1 schema decorators need the polyfill in place before the library is evaluated.
  await import('reflect-metadata')
  const { BasicConstraintsExtension, X509CertificateGenerator } = await import('@peculiar/x509')
  const serial = randomBytes(16)
  // Positive, and without a leading zero byte (RFC 5280 §4.1.2.2).
  serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0)
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial.toString('hex'),
    name: [{ CN: ['Mayfly registry tokens'] }],
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + VALIDITY_MS),
    signingAlgorithm: ECDSA,
    keys: {
      privateKey: privateKey.toCryptoKey(ECDSA, false, ['sign']),
      publicKey: createPublicKey(privateKey).toCryptoKey(ECDSA, true, ['verify']),
    },
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  })
  return `${certificate.toString('pem')}\n`
}

/** The certificate that is kept with a key. */
export function certificateIn(signingKey: string): string | undefined {
  const [pem] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(signingKey) ?? []
  return pem === undefined ? undefined : `${pem}\n`
}

/** Throws `BackendError` (`misconfigured`) when the key and the certificate do not belong together. */
export async function prepareSigner(signingKey: string, certificate: string): Promise<Signer> {
  const { SignJWT } = await import('jose')
  const key = readKey(signingKey)
  const parsed = readCertificate(certificate)
  if (!parsed.checkPrivateKey(key)) {
    throw new BackendError('misconfigured', '"certificate" is not one of "signing_key".')
  }
  const members = requiredMembers({ ...createPublicKey(key).export({ format: 'jwk' }) })
  const kid = hash('sha256', JSON.stringify(members), 'base64url')
  // RFC 7515 §4.1.6. Distribution 2 and 3 verify the chain up to `rootcertbundle`; 3 also knows keys by `kid`.
  const header = { alg: 'ES256', typ: 'JWT', kid, x5c: [parsed.raw.toString('base64')] }
  return {
    kid,
    publicJwk: { ...members, kid, use: 'sig', alg: 'ES256' },
    certificateEndsAt: parsed.validToDate.getTime(),
    sign: (claims) => new SignJWT({ ...claims }).setProtectedHeader(header).sign(key),
  }
}

function readKey(pem: string): KeyObject {
  const wrong = new BackendError('misconfigured', '"signing_key" is not a private P-256 key as PEM.')
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
    throw new BackendError('misconfigured', '"certificate" is not a certificate as PEM.', { cause })
  }
}
