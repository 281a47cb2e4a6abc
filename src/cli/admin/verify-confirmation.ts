import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject, parseJson } from '../../domain/formats/json.ts'
import { CHALLENGE_MS, JWT_TOLERANCE_MS } from '../../domain/limits.ts'
import type { Confirmation, PasskeyConfirmation, SsoConfirmation } from '../../domain/people/confirmation.ts'

const FIELDS = [
  'request',
  'passkeyId',
  'publicKey',
  'clientDataJson',
  'authenticatorData',
  'signature',
  'rpId',
  'origin',
] as const

/** The confirmation in the details of an entry. */
export function confirmationIn(details: unknown): Confirmation | undefined {
  const kept = isObject(details) ? details['confirmation'] : undefined
  if (!isObject(kept)) return undefined
  const isWhole = isObject(kept['sso'])
    ? typeof kept['request'] === 'string' && typeof kept['nonce'] === 'string' && isAnswer(kept['sso'])
    : FIELDS.every((field) => typeof kept[field] === 'string')
  return isWhole ? (kept as unknown as Confirmation) : undefined
}

const isAnswer = (answer: Record<string, unknown>) =>
  ['issuer', 'subject', 'audience'].every((field) => typeof answer[field] === 'string') &&
  ['authTime', 'issuedAt'].every((field) => typeof answer[field] === 'number')

const USER_PRESENT = 1
const USER_VERIFIED = 4
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()

/**
 * Why this is no confirmation of the request by the holder of the key, at about the time of the entry (epoch ms); undefined
 * if it is one. By WebAuthn Level 3, §7.2, with nothing but the entry and the cryptography of Node.
 */
export function faultOf(kept: Confirmation, at: number): string | undefined {
  return 'sso' in kept ? loginFault(kept, at) : signatureFault(kept, at)
}

/**
 * The same for a login at a provider: that the entry fits itself. Nothing in it is signed, so that the provider said this is
 * what the server says.
 */
function loginFault({ request, nonce, sso }: SsoConfirmation, at: number): string | undefined {
  if (nonce !== sha256(request).toString('base64url')) return 'the person logged in for another request'
  const asked = timeIn(request)
  if (!(Math.abs(at - asked) <= 2 * CHALLENGE_MS)) return 'it was confirmed at another time'
  if (!(sso.authTime * 1_000 >= asked - JWT_TOLERANCE_MS))
    return 'the person logged in before they were asked'
  return sso.issuedAt * 1_000 <= at + JWT_TOLERANCE_MS ? undefined : 'the person logged in after the act'
}

function timeIn(request: string): number {
  const asked = parseJson(request)
  return isObject(asked) && typeof asked['time'] === 'string' ? Date.parse(asked['time']) : Number.NaN
}

function signatureFault(kept: PasskeyConfirmation, at: number): string | undefined {
  const client = Buffer.from(kept.clientDataJson, 'base64url')
  const said = parseJson(client.toString('utf8'))
  if (!isObject(said) || said['type'] !== 'webauthn.get') return 'the passkey did not sign a confirmation'
  if (said['challenge'] !== sha256(kept.request).toString('base64url'))
    return 'the passkey signed another request'
  if (said['origin'] !== kept.origin || said['crossOrigin'] === true)
    return 'the confirmation was made on another page'
  const data = Buffer.from(kept.authenticatorData, 'base64url')
  if (data.length < 37 || !data.subarray(0, 32).equals(sha256(kept.rpId)))
    return 'the passkey belongs to another server'
  const flags = data[32] ?? 0
  if ((flags & USER_PRESENT) === 0 || (flags & USER_VERIFIED) === 0) return 'the person was not verified'
  if (!(Math.abs(at - timeIn(kept.request)) <= 2 * CHALLENGE_MS)) return 'it was confirmed at another time'
  return isSigned(kept, Buffer.concat([data, sha256(client)])) ? undefined : 'the signature is wrong'
}

function isSigned({ publicKey, signature }: PasskeyConfirmation, signed: Buffer): boolean {
  try {
    const { key, hash } = readCoseKey(Buffer.from(publicKey, 'base64url'))
    return verify(hash, signed, key, Buffer.from(signature, 'base64url'))
  } catch {
    return false
  }
}

const [KTY, CRV_OR_N, X_OR_E, Y] = [1, -1, -2, -3]
const [OKP, EC2, RSA] = [1, 2, 3]

/** A public key of RFC 9053: P-256, Ed25519, or RSA with SHA-256. Throws `Error` for any other. */
function readCoseKey(bytes: Buffer): { readonly key: KeyObject; readonly hash: 'sha256' | null } {
  const map = readMap(bytes)
  const text = (label: number) => {
    const value = map.get(label)
    if (!Buffer.isBuffer(value)) throw new Error('a part of the key is missing')
    return value.toString('base64url')
  }
  const from = (jwk: Record<string, string>) => createPublicKey({ key: jwk, format: 'jwk' })
  switch (map.get(KTY)) {
    case EC2:
      return { key: from({ kty: 'EC', crv: 'P-256', x: text(X_OR_E), y: text(Y) }), hash: 'sha256' }
    case OKP:
      return { key: from({ kty: 'OKP', crv: 'Ed25519', x: text(X_OR_E) }), hash: null }
    case RSA:
      return { key: from({ kty: 'RSA', n: text(CRV_OR_N), e: text(X_OR_E) }), hash: 'sha256' }
    default:
      throw new Error('the key has another form')
  }
}

/** A CBOR map (RFC 8949) from numbers to numbers and bytes, which is all that such a key has. */
function readMap(bytes: Buffer): Map<number, number | Buffer> {
  let at = 0
  const head = (): readonly [major: number, value: number] => {
    const first = bytes.readUInt8(at)
    const more = first & 31
    at += 1
    if (more < 24) return [first >> 5, more]
    const size = 2 ** (more - 24)
    if (size > 4) throw new Error('the key has another form')
    const value = bytes.readUIntBE(at, size)
    at += size
    return [first >> 5, value]
  }
  const number = ([major, value]: readonly [number, number]): number => {
    if (major > 1) throw new Error('the key has another form')
    return major === 0 ? value : -1 - value
  }
  const [kind, count] = head()
  if (kind !== 5) throw new Error('the key has another form')
  const map = new Map<number, number | Buffer>()
  for (let n = 0; n < count; n += 1) {
    const label = number(head())
    const [major, value] = head()
    if (major === 2) {
      map.set(label, bytes.subarray(at, at + value))
      at += value
    } else map.set(label, number([major, value]))
  }
  return map
}
