import type { CryptoKey } from 'jose'

/** What an approved agent receives, once. */
export interface EnrollmentAnswer {
  readonly token: string
  readonly oidc: { readonly client_id: string; readonly client_secret: string }
  readonly scopes: readonly string[]
  readonly agent_id: string
  /** Absent from servers before 0.2. */
  readonly agent_name?: string
  readonly signing_key_id: string
  readonly signing_email: string
}

/** A key for one answer. Its private half stays in this process. */
export interface AnswerKey {
  /** The claim `enc` of an enrollment proof. */
  readonly publicJwk: { readonly kty: string; readonly crv: string; readonly x: string }
  /** Throws `Error` if the text is not sealed to this key, or is no answer. */
  open(sealed: string): Promise<EnrollmentAnswer>
}

/** Each proof needs a new one. */
export async function newAnswerKey(): Promise<AnswerKey> {
  const pair = await crypto.subtle.generateKey('X25519', false, ['deriveBits'])
  if (!('privateKey' in pair)) throw new Error('X25519 gave no pair of keys')
  const { kty, crv, x } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  if (kty === undefined || crv === undefined || x === undefined) throw new Error('X25519 gave no public key')
  return { publicJwk: { kty, crv, x }, open: async (sealed) => read(await decrypt(sealed, pair.privateKey)) }
}

async function decrypt(sealed: string, privateKey: CryptoKey): Promise<string> {
  const { compactDecrypt } = await import('jose')
  const algorithms = { keyManagementAlgorithms: ['ECDH-ES'], contentEncryptionAlgorithms: ['A256GCM'] }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(
      (await compactDecrypt(sealed, privateKey, algorithms)).plaintext,
    )
  } catch (cause) {
    throw unreadable(cause)
  }
}

function read(text: string): EnrollmentAnswer {
  const value = JSON.parse(text) as EnrollmentAnswer | null
  const texts = [value?.token, value?.oidc?.client_id, value?.oidc?.client_secret, value?.agent_id]
  if (value?.agent_name !== undefined && typeof value.agent_name !== 'string') throw unreadable()
  if (value === null || texts.some((one) => typeof one !== 'string') || !Array.isArray(value.scopes))
    throw unreadable()
  return value
}

const unreadable = (cause?: unknown) =>
  new Error('The answer is not sealed to this key, or is not from a Mayfly server.', { cause })
