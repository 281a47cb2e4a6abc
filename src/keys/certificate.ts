import { type KeyObject, randomBytes } from 'node:crypto'
import { DAY_MS } from '../domain/limits.ts'

const VALIDITY_MS = 30 * 365 * DAY_MS
/** RFC 5280, appendix A: ub-common-name. */
const MAX_COMMON_NAME = 64
const RS256 = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' } as const

/**
 * A self-signed certificate of an RSA key as base64 DER, the form of `x5c` (RFC 7517 §4.7). `commonName` is
 * truncated to 64 characters; `now` is epoch ms. It proves nothing, but some token endpoints refuse a key without one.
 */
export async function selfSignedCertificate(
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
  commonName: string,
  now: number,
): Promise<string> {
  // The ASN.1 schema decorators need the polyfill in place before the library is evaluated.
  await import('reflect-metadata')
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } =
    await import('@peculiar/x509')
  const serial = randomBytes(16)
  // Positive, and without a leading zero byte (RFC 5280 §4.1.2.2).
  serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0)
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial.toString('hex'),
    name: [{ CN: [commonName.slice(0, MAX_COMMON_NAME)] }],
    notBefore: new Date(now),
    notAfter: new Date(now + VALIDITY_MS),
    signingAlgorithm: RS256,
    keys: {
      privateKey: keys.privateKey.toCryptoKey(RS256, false, ['sign']),
      publicKey: keys.publicKey.toCryptoKey(RS256, true, ['verify']),
    },
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    ],
  })
  return Buffer.from(certificate.rawData).toString('base64')
}
