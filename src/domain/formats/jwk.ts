const REQUIRED = {
  RSA: ['e', 'kty', 'n'],
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
} as const

/**
 * The required members of a public key, in the order in which a thumbprint covers them (RFC 7638 §3.2, RFC 8037 §2).
 * Throws `Error` for another key type.
 */
export function requiredMembers(jwk: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kty = jwk['kty']
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') throw new Error('no thumbprint for this key type')
  return Object.fromEntries(REQUIRED[kty].map((name) => [name, jwk[name]]))
}
