import {
  constants,
  createHash,
  createPrivateKey,
  pbkdf2,
  publicEncrypt,
  randomBytes,
  sign,
} from 'node:crypto'
import { promisify } from 'node:util'
import { Refusal, upstreamProtocol } from '../refusal.ts'
import { signWithPassword } from './ed25519.ts'
import { NATIVE } from './handshake.ts'

/** How an account proves itself, by the name of the method at the server. */
export interface Method {
  /** To the first challenge. */
  first(challenge: Buffer): Buffer
  /** To what the server says next; undefined: nothing is to be sent. Throws `Refusal`. */
  next(said: Buffer): Promise<Buffer | undefined>
}

export interface MethodOptions {
  readonly password: string
  /** Over TLS. */
  readonly isEncrypted: boolean
  /** Without TLS, but on this machine, and we know who listens. */
  readonly isNear: boolean
}

const hash = (algorithm: string, ...parts: readonly (Buffer | string)[]) =>
  parts.reduce((sum, part) => sum.update(part), createHash(algorithm)).digest()
const xor = (one: Buffer, other: Buffer) =>
  Buffer.from(one.map((byte, at) => byte ^ (other[at % other.length] ?? 0)))

export const CACHING_SHA2 = 'caching_sha2_password'

/** Throws `Refusal` for one that we do not have, or that shows the password to others. */
export function methodOf(name: string, options: MethodOptions): Method {
  const { password } = options
  switch (name) {
    case NATIVE:
      return { first: (challenge) => nativeAnswer(password, challenge), next: unexpected }
    case CACHING_SHA2:
      return cachingSha2(options)
    case 'client_ed25519':
      return { first: (challenge) => signWithPassword(Buffer.from(password), challenge), next: unexpected }
    case 'parsec':
      return parsec(password)
    default:
      throw new Refusal(
        'upstream_login_method',
        'The server asks for a login method that the proxy does not have.',
        'Let the accounts of the backend log in with mysql_native_password, caching_sha2_password, ed25519 or parsec.',
      )
  }
}

const unexpected = async (): Promise<never> => {
  throw upstreamProtocol('a second challenge of the login')
}

/** "Native Authentication": SHA1(password) XOR SHA1(challenge + SHA1(SHA1(password))). */
export function nativeAnswer(password: string, challenge: Buffer): Buffer {
  if (password === '') return Buffer.alloc(0)
  const once = hash('sha1', password)
  return xor(once, hash('sha1', challenge.subarray(0, 20), hash('sha1', once)))
}

/** SHA256(password) XOR SHA256(SHA256(SHA256(password)) + challenge). */
export function sha2Answer(password: string, challenge: Buffer): Buffer {
  const once = hash('sha256', password)
  return xor(once, hash('sha256', hash('sha256', once), challenge))
}

export const FAST_OK = 3
const FULL = 4
const REQUEST_KEY = Buffer.of(2)

/** "Caching_sha2_password information": a hash that the server knows from earlier logins, else the password itself. */
function cachingSha2({ password, isEncrypted, isNear }: MethodOptions): Method {
  let scramble = Buffer.alloc(0)
  let asksForKey = false
  return {
    first(challenge) {
      scramble = Buffer.from(challenge.subarray(0, 20))
      return sha2Answer(password, scramble)
    },
    async next(said) {
      if (asksForKey) return encrypted(password, scramble, said)
      if (said.length !== 1 || (said[0] !== FAST_OK && said[0] !== FULL)) return unexpected()
      if (said[0] === FAST_OK) return undefined
      if (isEncrypted) return Buffer.from(`${password}\0`)
      if (!isNear) throw inClear()
      asksForKey = true
      return REQUEST_KEY
    },
  }
}

function encrypted(password: string, scramble: Buffer, key: Buffer): Buffer {
  try {
    return publicEncrypt(
      { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha1' },
      xor(Buffer.from(`${password}\0`), scramble),
    )
  } catch {
    throw upstreamProtocol('a key of the login')
  }
}

const inClear = () =>
  new Refusal(
    'upstream_login_method',
    'The server asks for the password itself, which the proxy sends only over TLS.',
    'Set "tls" of the backend to "verify-full".',
  )

const deriveKey = promisify(pbkdf2)
/** PKCS #8 of an Ed25519 key up to its 32 bytes (RFC 8410 §7). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** MariaDB, "Authentication Plugin - PARSEC": an Ed25519 key that is derived from the password. */
function parsec(password: string): Method {
  let challenge = Buffer.alloc(0)
  return {
    first(given) {
      challenge = Buffer.from(given.subarray(0, 32))
      return Buffer.alloc(0)
    },
    async next(said) {
      const factor = said[1] ?? 0
      // The server permits 0 to 3, which is up to 8,192 rounds.
      if (said[0] !== 0x50 || factor > 8 || said.length < 10) return unexpected()
      const seed = await deriveKey(password, said.subarray(2), 1_024 << factor, 32, 'sha512')
      const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })
      const own = randomBytes(32)
      return Buffer.concat([own, sign(null, Buffer.concat([challenge, own]), key)])
    },
  }
}
