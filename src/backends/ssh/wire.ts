import { createPrivateKey, generateKeyPair, type KeyObject, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { misconfigured, unsupported } from '../../domain/backend-error.ts'

/** Data types of SSH (RFC 4251 §5). */
export const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
export const uint64 = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}
export const string = (value: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(value as string)
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** Splits what consists of strings alone; an mpint has the same frame. Throws `RangeError`. */
function readStrings(bytes: Buffer): Buffer[] {
  const all: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length) throw new RangeError('a string ends too early')
    all.push(bytes.subarray(at + 4, end))
    at = end
  }
  return all
}

export interface PublicKey {
  readonly type: string
  /** The fields behind the type, as they stand in the key and in its certificate. */
  readonly fields: readonly Buffer[]
}

const MIN_RSA_BYTES = 2048 / 8
const MAX_RSA_BYTES = 8192 / 8
const ED25519_BYTES = 32
const isCurve = (name: string, bytes: number) => (fields: readonly Buffer[]) =>
  fields[0]?.toString() === name && fields[1]?.length === bytes && fields[1][0] === 4

/** Number of fields and their form: RFC 8709 §4, RFC 5656 §3.1, RFC 4253 §6.6, and OpenSSH's PROTOCOL.u2f. */
const KEY_TYPES: Readonly<Record<string, readonly [number, (fields: readonly Buffer[]) => boolean]>> = {
  'ssh-ed25519': [1, ([key]) => key?.length === ED25519_BYTES],
  'sk-ssh-ed25519@openssh.com': [2, ([key]) => key?.length === ED25519_BYTES],
  'ecdsa-sha2-nistp256': [2, isCurve('nistp256', 65)],
  'ecdsa-sha2-nistp384': [2, isCurve('nistp384', 97)],
  'ecdsa-sha2-nistp521': [2, isCurve('nistp521', 133)],
  'sk-ecdsa-sha2-nistp256@openssh.com': [3, isCurve('nistp256', 65)],
  'ssh-rsa': [
    2,
    ([, modulus]) =>
      // A positive mpint of this length begins with a zero byte.
      modulus !== undefined && modulus.length > MIN_RSA_BYTES && modulus.length <= MAX_RSA_BYTES + 1,
  ],
}

/** Reads a line of a `.pub` file. Throws `BackendError` (`unsupported`). */
export function readPublicKey(line: string): PublicKey {
  const [type = '', base64 = ''] = line.trim().split(' ')
  const [fieldCount, isValid] = (Object.hasOwn(KEY_TYPES, type) && KEY_TYPES[type]) || [0, () => false]
  try {
    const [name, ...fields] = readStrings(Buffer.from(base64, 'base64'))
    if (name?.toString() === type && fields.length === fieldCount && isValid(fields)) return { type, fields }
  } catch {
    // Not in the form of a key.
  }
  throw unsupported(
    '"public_key" is not an OpenSSH public key of a supported type (Ed25519, ECDSA, or RSA of 2048 to 8192 bits).',
  )
}

export const blobOf = ({ type, fields }: PublicKey): Buffer =>
  Buffer.concat([string(type), ...fields.map(string)])

export const lineOf = (type: string, blob: Buffer, comment: string): string =>
  `${type} ${blob.toString('base64')} ${comment}`

export const ED25519 = 'ssh-ed25519'

export function publicKeyOf(key: KeyObject): PublicKey {
  const { x = '' } = key.export({ format: 'jwk' })
  return { type: ED25519, fields: [Buffer.from(x, 'base64url')] }
}

const generate = promisify(generateKeyPair)

export async function newPrivateKey(): Promise<KeyObject> {
  return (await generate('ed25519', {})).privateKey
}

const MAGIC = Buffer.from('openssh-key-v1\0')
const LABEL = 'OPENSSH PRIVATE KEY'
/** Cipher, key derivation and its options of a key without a passphrase. */
const PLAIN = [string('none'), string('none'), string('')]
const BLOCK_BYTES = 8

/** The form that `ssh-keygen` writes (OpenSSH, PROTOCOL.key), without a passphrase. */
export function writePrivateKey(key: KeyObject, comment: string): string {
  const { d = '' } = key.export({ format: 'jwk' })
  const publicKey = publicKeyOf(key)
  const raw = publicKey.fields[0] ?? Buffer.alloc(0)
  const check = randomBytes(4)
  const secret = Buffer.concat([
    ...[check, check, blobOf(publicKey)],
    ...[string(Buffer.concat([Buffer.from(d, 'base64url'), raw])), string(comment)],
  ])
  const missing = (BLOCK_BYTES - (secret.length % BLOCK_BYTES)) % BLOCK_BYTES
  const padding = Buffer.from(Array.from({ length: missing }, (_, index) => index + 1))
  const whole = Buffer.concat([
    ...[MAGIC, ...PLAIN, uint32(1), string(blobOf(publicKey))],
    string(Buffer.concat([secret, padding])),
  ])
  const lines = whole.toString('base64').match(/.{1,70}/g) ?? []
  return [`-----BEGIN ${LABEL}-----`, ...lines, `-----END ${LABEL}-----`, ''].join('\n')
}

/** Reads an Ed25519 key without a passphrase, as `ssh-keygen` or (PKCS #8) OpenSSL writes it. Throws `BackendError`. */
export function readPrivateKey(pem: string): KeyObject {
  try {
    const key = pem.includes(LABEL) ? fromOpenSsh(pem) : createPrivateKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // Nothing of a private key may get into a message.
  }
  throw misconfigured('"ca_key" is not an Ed25519 private key without a passphrase.')
}

/** PKCS #8 of an Ed25519 key up to its seed (RFC 8410 §7). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

function fromOpenSsh(pem: string): KeyObject {
  const whole = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')
  const start = Buffer.concat([MAGIC, ...PLAIN, uint32(1)])
  if (!whole.subarray(0, start.length).equals(start)) throw new RangeError('encrypted, or not a key')
  const [blob, secret] = readStrings(whole.subarray(start.length))
  if (blob === undefined || secret === undefined) throw new RangeError('not a key')
  // Two check numbers, the public key, and a string of the seed with the public key behind it.
  const at = 8 + blob.length + 4
  const der = Buffer.concat([PKCS8, secret.subarray(at, at + ED25519_BYTES)])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  if (!blobOf(publicKeyOf(key)).equals(blob)) throw new RangeError('another type of key')
  return key
}
