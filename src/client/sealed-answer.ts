/** What an approved agent is told once. */
export interface EnrollmentAnswer {
  readonly token: string
  readonly oidc: { readonly client_id: string; readonly client_secret: string }
  readonly scopes: readonly string[]
  readonly agent_id: string
  readonly signing_key_id: string
  readonly signing_email: string
}

/** A key for one answer, whose private half stays in this process. */
export interface AnswerKey {
  /** The claim `enc` of an enrollment proof. */
  readonly publicJwk: { readonly kty: string; readonly crv: string; readonly x: string }
  /** Throws `Error` for what was not sealed to this key, or is no answer. */
  open(sealed: string): Promise<EnrollmentAnswer>
}

/** Made anew for each proof. */
export async function newAnswerKey(): Promise<AnswerKey> {
  const pair = await crypto.subtle.generateKey('X25519', false, ['deriveBits'])
  if (!('privateKey' in pair)) throw new Error('X25519 gave no pair of keys')
  const { kty, crv, x } = await crypto.subtle.exportKey('jwk', pair.publicKey)
  if (kty === undefined || crv === undefined || x === undefined) throw new Error('X25519 gave no public key')
  return { publicJwk: { kty, crv, x }, open: async (sealed) => read(await decrypt(sealed, pair.privateKey)) }
}

type PrivateKey = Parameters<typeof crypto.subtle.deriveBits>[1]

const KEY_BITS = 256
const TAG_BITS = 128

/** A compact JWE by `ECDH-ES` in its direct form and `A256GCM` (RFC 7518 §4.6, §5.3). */
async function decrypt(sealed: string, privateKey: PrivateKey): Promise<string> {
  const parts = sealed.split('.')
  const [head = '', wrapped, iv = '', text = '', tag = ''] = parts
  if (parts.length !== 5 || wrapped !== '') throw unreadable()
  const header = JSON.parse(new TextDecoder().decode(bytesOf(head))) as Record<string, unknown>
  if (header['alg'] !== 'ECDH-ES' || header['enc'] !== 'A256GCM' || 'crit' in header) throw unreadable()
  try {
    const { kty, crv, x } = header['epk'] as Record<string, string>
    const epk = await crypto.subtle.importKey(
      'jwk',
      { kty: String(kty), crv: String(crv), x: String(x) },
      { name: 'X25519' },
      false,
      [],
    )
    const shared = await crypto.subtle.deriveBits({ name: 'X25519', public: epk }, privateKey, KEY_BITS)
    const key = await crypto.subtle.importKey('raw', await derive(shared, header), 'AES-GCM', false, [
      'decrypt',
    ])
    const way = {
      name: 'AES-GCM',
      iv: bytesOf(iv),
      additionalData: new TextEncoder().encode(head),
      tagLength: TAG_BITS,
    }
    const plain = await crypto.subtle.decrypt(way, key, joined(bytesOf(text), bytesOf(tag)))
    return new TextDecoder('utf-8', { fatal: true }).decode(plain)
  } catch (cause) {
    throw unreadable(cause)
  }
}

/** Concat KDF (NIST SP 800-56A §5.8.1, RFC 7518 §4.6.2): one round gives the 256 bits. */
function derive(shared: ArrayBuffer, { apu, apv }: Record<string, unknown>): Promise<ArrayBuffer> {
  const encoder = new TextEncoder()
  const part = (data: Uint8Array) => joined(uint32(data.length), data)
  const party = (value: unknown) => part(typeof value === 'string' ? bytesOf(value) : new Uint8Array())
  const info = joined(part(encoder.encode('A256GCM')), party(apu), party(apv), uint32(KEY_BITS))
  return crypto.subtle.digest('SHA-256', joined(uint32(1), new Uint8Array(shared), info))
}

function uint32(value: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0))
}

function read(text: string): EnrollmentAnswer {
  const value = JSON.parse(text) as EnrollmentAnswer | null
  const texts = [value?.token, value?.oidc?.client_id, value?.oidc?.client_secret, value?.agent_id]
  if (value === null || texts.some((one) => typeof one !== 'string') || !Array.isArray(value.scopes))
    throw unreadable()
  return value
}

const unreadable = (cause?: unknown) =>
  new Error('The answer is not sealed to this key, or is not as a Mayfly server writes it.', { cause })
