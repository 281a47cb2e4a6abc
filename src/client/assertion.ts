/** The private key of an enrolled agent: Ed25519 or P-256 (RFC 8037, RFC 7518 §6.2). */
export interface PrivateJwk {
  readonly kty: string
  readonly crv: string
  readonly x: string
  readonly y?: string | undefined
  readonly d: string
}

export interface AssertionClaims {
  readonly clientId: string
  /** The issuer of the server. */
  readonly audience: string
  readonly nowMs: number
}

const LIFETIME_SECONDS = 60

/**
 * Signs a client assertion for `private_key_jwt` (RFC 7523 §2.2), good once, for a minute. It has no `iat`: a server
 * would refuse it if our clock is some seconds ahead.
 */
export async function signAssertion(jwk: PrivateJwk, claims: AssertionClaims): Promise<string> {
  return signCompact(jwk, {
    iss: claims.clientId,
    sub: claims.clientId,
    aud: claims.audience,
    exp: Math.floor(claims.nowMs / 1_000) + LIFETIME_SECONDS,
    jti: crypto.randomUUID(),
  })
}

/** Signs these claims as a compact JWS. */
export async function signCompact(
  jwk: PrivateJwk,
  claims: Readonly<Record<string, unknown>>,
): Promise<string> {
  const { alg, importAs, signAs } = algorithmOf(jwk)
  const { kty, crv, x, y, d } = jwk
  const key = await crypto.subtle.importKey(
    'jwk',
    { kty, crv, x, d, ...(y === undefined ? {} : { y }) },
    importAs,
    false,
    ['sign'],
  )
  const input = `${encode(JSON.stringify({ alg, typ: 'JWT' }))}.${encode(JSON.stringify(claims))}`
  const signature = await crypto.subtle.sign(signAs, key, new TextEncoder().encode(input))
  return `${input}.${base64url(new Uint8Array(signature))}`
}

function algorithmOf({ kty, crv }: PrivateJwk) {
  if (kty === 'OKP' && crv === 'Ed25519')
    return { alg: 'EdDSA', importAs: { name: 'Ed25519' }, signAs: { name: 'Ed25519' } }
  if (kty === 'EC' && crv === 'P-256')
    return {
      alg: 'ES256',
      importAs: { name: 'ECDSA', namedCurve: 'P-256' },
      signAs: { name: 'ECDSA', hash: 'SHA-256' },
    }
  throw new TypeError('The private key is neither Ed25519 nor P-256.')
}

function encode(text: string): string {
  return base64url(new TextEncoder().encode(text))
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
}
