import { createPrivateKey, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto'
import { misconfigured } from '../../domain/backend-error.ts'
import { signAssertion } from '../assertion.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

const ASSERTION_MS = 60_000
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** The parts of a request that authenticate our client. */
export interface Login {
  readonly headers: Readonly<Record<string, string>>
  readonly form: Readonly<Record<string, string>>
}

/** Throws `BackendError` (`misconfigured`) when the key is of no use. */
export async function prepareLogin(settings: Config, host: Host): Promise<() => Promise<Login>> {
  const { client_id: id, client_secret: secret = '', client_auth: auth } = settings
  switch (auth) {
    case 'basic': {
      // RFC 6749 §2.3.1: both are form-encoded first.
      const text = [id, secret].map((part) => new URLSearchParams([['', part]]).toString().slice(1)).join(':')
      const authorization = `Basic ${Buffer.from(text).toString('base64')}`
      return async () => ({ headers: { authorization }, form: {} })
    }
    case 'post':
      return async () => ({ headers: {}, form: { client_id: id, client_secret: secret } })
    case 'none':
      return async () => ({ headers: {}, form: { client_id: id } })
    case 'private_key_jwt':
      return prepareAssertion(settings, host)
    default: {
      const never: never = auth
      return never
    }
  }
}

/** RFC 7523 §2.2 and §3; OpenID Connect Core 1.0 §9. */
function prepareAssertion(settings: Config, host: Host): () => Promise<Login> {
  const { client_id: id, key_id: kid } = settings
  const { key, alg } = readKey(settings.private_key ?? '')
  return async () => {
    const iat = Math.floor(host.now() / 1000)
    const claims = {
      jti: randomUUID(),
      iss: id,
      sub: id,
      aud: settings.assertion_audience ?? settings.token_endpoint,
      iat,
      exp: iat + ASSERTION_MS / 1000,
    }
    const assertion = await signAssertion(key, { alg, ...(kid === undefined ? {} : { kid }) }, claims)
    const form = { client_id: id, client_assertion_type: ASSERTION_TYPE, client_assertion: assertion }
    return { headers: {}, form }
  }
}

const CURVES: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}

function readKey(text: string): { readonly key: KeyObject; readonly alg: string } {
  const wrong = misconfigured('"private_key" is not a private key as PEM or JWK.')
  let key: KeyObject
  let named: unknown
  try {
    if (text.trimStart().startsWith('{')) {
      const jwk = JSON.parse(text) as JsonWebKey
      named = jwk['alg']
      key = createPrivateKey({ key: jwk, format: 'jwk' })
    } else key = createPrivateKey(text)
  } catch {
    // No cause: a parser's message may quote the key.
    throw wrong
  }
  const { namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  const type = key.asymmetricKeyType
  const usual = type === 'rsa' ? 'RS256' : type === 'ed25519' ? 'EdDSA' : CURVES[namedCurve]
  const alg = type === 'rsa' && named === 'PS256' ? 'PS256' : usual
  if (alg === undefined) throw wrong
  return { key, alg }
}
