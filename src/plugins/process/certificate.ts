import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import {
  basicConstraints,
  certificateBody,
  ECDSA_SHA256,
  extension,
  keyUsage,
  withSignature,
} from '../../domain/certificate.ts'
import { ascii, der, oid, SEQUENCE } from '../../domain/formats/der.ts'
import { DAY_MS } from '../../domain/limits.ts'

/** A certificate for one connection between two processes, which they hand each other (go-plugin's AutoMTLS). */
export interface OwnCertificate {
  /** PEM. */
  readonly certificate: string
  /** PEM, PKCS #8. */
  readonly key: string
  readonly raw: Uint8Array
}

/** As long as a server may run; the key never leaves the process. */
const LIFETIME_MS = 3_650 * DAY_MS

/** Self-signed and its own authority, as Go and gRPC require of a certificate that is trusted by itself. */
const EXTENSIONS = [
  basicConstraints(true),
  // digitalSignature and keyCertSign.
  keyUsage(2, 0x84),
  // serverAuth and clientAuth.
  extension('551d25', false, der(SEQUENCE, oid('2b06010505070301'), oid('2b06010505070302'))),
  extension('551d11', false, der(SEQUENCE, der(0x82, ascii('localhost')))),
]

export function newCertificate(now: number): OwnCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const body = certificateBody({
    serial: randomBytes(16),
    // go-plugin's clients ask for this name.
    commonName: 'localhost',
    from: now - DAY_MS,
    to: now + LIFETIME_MS,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    algorithm: ECDSA_SHA256,
    extensions: EXTENSIONS,
  })
  const raw = withSignature(body, ECDSA_SHA256, sign('sha256', body, privateKey))
  const key = String(privateKey.export({ type: 'pkcs8', format: 'pem' }))
  return { raw, certificate: new X509Certificate(raw).toString(), key }
}
