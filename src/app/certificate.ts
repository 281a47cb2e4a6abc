import { createHash, X509Certificate } from 'node:crypto'
import type { ServerCertificate } from '../core/notifications/watch-ages.ts'

/** The first certificate of a PEM, which is the server's own. */
export function certificateIn(pem: Buffer | undefined): ServerCertificate | undefined {
  if (pem === undefined) return undefined
  const { raw, validTo } = new X509Certificate(pem)
  return { sha256: createHash('sha256').update(raw).digest('hex'), notAfter: Date.parse(validTo) }
}
