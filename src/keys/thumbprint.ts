import { hash } from 'node:crypto'

/** The required members (RFC 7638 §3.2, RFC 8037 §2), in the order of the thumbprint. */
const REQUIRED = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
} as const

/** RFC 7638: SHA-256 over the required members, 43 base64url characters. Throws `Error` for another key type. */
export function thumbprint(jwk: Readonly<Record<string, unknown>>): string {
  const kty = jwk['kty']
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') throw new Error('no thumbprint for this key type')
  const members = REQUIRED[kty].map((name) => [name, jwk[name]])
  return hash('sha256', JSON.stringify(Object.fromEntries(members)), 'base64url')
}
