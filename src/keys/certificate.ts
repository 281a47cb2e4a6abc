import { type KeyObject, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'
import {
  basicConstraints,
  certificateBody,
  keyUsage,
  RSA_SHA256,
  withSignature,
} from '../domain/certificate.ts'
import { DAY_MS } from '../domain/limits.ts'

const VALIDITY_MS = 30 * 365 * DAY_MS
/** RFC 5280, appendix A: ub-common-name. */
const MAX_COMMON_NAME = 64

const signAsync = promisify(sign)

/**
 * A self-signed certificate of an RSA key as base64 DER, the form of `x5c` (RFC 7517 §4.7). `commonName` is
 * truncated to 64 characters; `now` is epoch ms. It proves nothing, but some token endpoints refuse a key without one.
 */
export async function selfSignedCertificate(
  keys: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
  commonName: string,
  now: number,
): Promise<string> {
  const body = certificateBody({
    serial: randomBytes(16),
    commonName: commonName.slice(0, MAX_COMMON_NAME),
    from: now,
    to: now + VALIDITY_MS,
    publicKey: keys.publicKey.export({ type: 'spki', format: 'der' }),
    algorithm: RSA_SHA256,
    // digitalSignature.
    extensions: [basicConstraints(false), keyUsage(7, 0x80)],
  })
  const signature = await signAsync('sha256', body, keys.privateKey)
  return Buffer.from(withSignature(body, RSA_SHA256, signature)).toString('base64')
}
