import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  sign as signBytes,
} from 'node:crypto'
import { promisify } from 'node:util'
import { type JWK, jwtVerify } from 'jose'
import { JWT_TOLERANCE_MS } from '../domain/limits.ts'
import { selfSignedCertificate } from './certificate.ts'
import { isAudience, isNumericDate, isText, isTextArray, readStrictHeader } from './compact-jws.ts'
import { thumbprint } from './thumbprint.ts'

export type PublicJwk = Readonly<Record<string, unknown>>

export interface SigningKey {
  readonly kid: string
  readonly alg: 'RS256' | 'ES256' | 'EdDSA'
  /** Returns a compact JWS, signed on the thread pool; `alg` and `kid` of the header come from the key. */
  sign(header: Record<string, unknown>, payload: Record<string, unknown>): Promise<string>
  readonly publicJwk: Record<string, unknown>
}

export interface IssuerKey {
  readonly kid: string
  readonly publicJwk: Record<string, unknown>
  /** PKCS #8 PEM. */
  readonly privateKey: string
}

export interface VerifiedToken {
  readonly jti: string
  readonly subject: string
  readonly clientId: string
  readonly agentId: string
  readonly agentName: string
  readonly scopes: string[]
  readonly audience: string | string[]
  /** Epoch ms. */
  readonly issuedAt: number
  /** Epoch ms. */
  readonly expiresAt: number
  readonly kid: string
  /** Of the secrets that the agent logged in with. */
  readonly rotation: number
  /** The run that it is for. */
  readonly run: string | undefined
}

const generate = promisify(generateKeyPair)

/**
 * Generates an RSA-2048 key with its certificate on the thread pool. `issuer` is the issuer's URL (throws
 * `TypeError` for anything else), `now` epoch ms. `kid` is the RFC 7638 thumbprint.
 */
export async function generateIssuerKey(issuer: string, now: number): Promise<IssuerKey> {
  const host = new URL(issuer).hostname
  const keys = await generate('rsa', { modulusLength: 2048, publicExponent: 0x10001 })
  const { n, e } = keys.publicKey.export({ format: 'jwk' })
  const kid = thumbprint({ kty: 'RSA', n, e })
  const x5c = [await selfSignedCertificate(keys, host, now)]
  return {
    kid,
    publicJwk: { kty: 'RSA', use: 'sig', alg: 'RS256', kid, n, e, x5c },
    privateKey: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/**
 * Loads a signing key: RSA (RS256), P-256 (ES256) or Ed25519 (EdDSA). Throws `Error` if the private key has another
 * type or does not belong to the public key. `kid` is that of the public key, or else its thumbprint.
 */
export function loadSigningKey(privateKeyPem: string, publicJwk: PublicJwk): SigningKey {
  const privateKey = createPrivateKey(privateKeyPem)
  const alg = algorithmOf(privateKey)
  if (publicJwk['alg'] !== undefined && publicJwk['alg'] !== alg) {
    throw new Error('the public key names another algorithm')
  }
  const ours = createPublicKey(privateKey).export({ format: 'jwk' })
  if (thumbprint(ours) !== thumbprint(publicJwk)) {
    throw new Error('the private key does not belong to the public key')
  }
  const kid = typeof publicJwk['kid'] === 'string' ? publicJwk['kid'] : thumbprint(publicJwk)
  const encodeHeader = createHeaderEncoder(alg, kid)
  return {
    kid,
    alg,
    publicJwk: { ...publicJwk },
    sign: async (header, payload) => {
      const input = `${encodeHeader(header)}.${encode(payload)}`
      const signature = await signOnPool(alg, privateKey, Buffer.from(input))
      return `${input}.${signature.toString('base64url')}`
    },
  }
}

function algorithmOf(key: KeyObject): SigningKey['alg'] {
  if (key.asymmetricKeyType === 'rsa') {
    // RFC 7518 §3.3: RS256 needs 2048 bits or more.
    if ((key.asymmetricKeyDetails?.modulusLength ?? 0) >= 2048) return 'RS256'
  } else if (key.asymmetricKeyType === 'ed25519') return 'EdDSA'
  else if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1')
    return 'ES256'
  throw new Error('a signing key must be RSA of 2048 bits or more, P-256 or Ed25519')
}

function encode(value: Record<string, unknown>): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Encodes each header with only a `typ` once: nearly all are, with a handful of values. */
function createHeaderEncoder(alg: string, kid: string): (header: Record<string, unknown>) => string {
  const known = new Map<string, string>()
  return (header) => {
    const names = Object.keys(header)
    const typ = header['typ']
    if (names.length !== 1 || typeof typ !== 'string') return encode({ ...header, alg, kid })
    let text = known.get(typ)
    if (text === undefined) {
      text = encode({ typ, alg, kid })
      if (known.size < 16) known.set(typ, text)
    }
    return text
  }
}

/** The callback form runs on the thread pool: an RSA signature would block the event loop for a millisecond. */
function signOnPool(alg: SigningKey['alg'], key: KeyObject, input: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // JWS writes ECDSA signatures as r || s, not as DER (RFC 7518 §3.4). Passing a bare key is much faster than options.
    const how = alg === 'ES256' ? ({ key, dsaEncoding: 'ieee-p1363' } as const) : key
    signBytes(alg === 'EdDSA' ? null : 'sha256', input, how, (error, signature) => {
      if (error === null) resolve(signature)
      else reject(error)
    })
  })
}

/**
 * Verifies one of our access tokens (RFC 9068) against the given keys alone. `now` is epoch ms. Without
 * `audience`, accepts any. Returns `undefined` for an invalid token and never throws. Pass the same `publicJwk` objects
 * each time: jose keeps the imported form of each. Use `jti` to identify a token, not its text: a signature has several
 * valid encodings.
 */
export async function verifyAccessToken(
  token: string,
  keys: readonly { readonly kid: string; readonly publicJwk: PublicJwk }[],
  expect: { readonly issuer: string; readonly audience?: string; readonly now: number },
): Promise<VerifiedToken | undefined> {
  const header = readStrictHeader(token)
  if (header === undefined || header.alg !== 'RS256' || header.typ !== 'at+jwt') return undefined
  const known = keys.find(({ kid }) => kid === header.kid)
  if (known === undefined || known.publicJwk['kty'] !== 'RSA') return undefined
  try {
    const { payload } = await jwtVerify(token, known.publicJwk as JWK, {
      algorithms: ['RS256'],
      typ: 'at+jwt',
      issuer: expect.issuer,
      ...(expect.audience === undefined ? {} : { audience: expect.audience }),
      requiredClaims: ['exp', 'iat', 'sub', 'aud', 'jti', 'client_id'],
      clockTolerance: JWT_TOLERANCE_MS / 1000,
      currentDate: new Date(expect.now),
    })
    return readClaims(payload, known.kid, expect.now)
  } catch {
    return undefined
  }
}

function readClaims(
  payload: Readonly<Record<string, unknown>>,
  kid: string,
  now: number,
): VerifiedToken | undefined {
  const { iss, aud, exp, iat, nbf, sub, jti, client_id, agent_id, agent_name, scopes, scope } = payload
  const { rotation, run } = payload
  if (!isNumericDate(exp) || !isNumericDate(iat) || exp <= iat) return undefined
  if (nbf !== undefined && !isNumericDate(nbf)) return undefined
  // jose has checked `exp` and `nbf` against the time, but lets a future `iat` pass.
  const issuedAt = iat * 1000
  if (issuedAt - JWT_TOLERANCE_MS > now) return undefined
  if (!isText(iss) || !isAudience(aud) || !isText(sub) || !isText(jti) || !isText(client_id)) return undefined
  if (!isText(agent_id) || !isText(agent_name) || !isTextArray(scopes) || typeof scope !== 'string')
    return undefined
  if (rotation !== undefined && !Number.isSafeInteger(rotation)) return undefined
  if (run !== undefined && !isText(run)) return undefined
  return {
    jti,
    subject: sub,
    clientId: client_id,
    agentId: agent_id,
    agentName: agent_name,
    scopes,
    audience: aud,
    issuedAt,
    expiresAt: exp * 1000,
    kid,
    rotation: (rotation as number | undefined) ?? 0,
    run,
  }
}
