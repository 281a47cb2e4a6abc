import { createHash, createHmac, pbkdf2, randomBytes, timingSafeEqual, X509Certificate } from 'node:crypto'
import { promisify } from 'node:util'
import { upstreamProtocol } from '../refusal.ts'

/** The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), with channel binding where there is one (RFC 5929 §4). */
export interface Scram {
  readonly mechanism: 'SCRAM-SHA-256' | 'SCRAM-SHA-256-PLUS'
  readonly first: string
  /** Throws `Refusal`. */
  answer(serverFirst: string): Promise<string>
  /** Throws `Refusal` for a server that does not know the password. */
  verify(serverFinal: string): void
}

export interface ScramOptions {
  readonly password: string
  readonly mechanisms: readonly string[]
  /** DER of the server's certificate; absent without TLS. */
  readonly certificate?: Buffer | undefined
  readonly nonce?: string
}

const deriveKey = promisify(pbkdf2)
const KEY_BYTES = 32
/** A hostile server could name any number. */
const MOST_ITERATIONS = 1_000_000
const MOST_TEXT = 4_096

const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
const base64 = (value: string | Buffer) => Buffer.from(value).toString('base64')

/** Undefined where the server offers no mechanism that we have. */
export function createScram(options: ScramOptions): Scram | undefined {
  const { password, mechanisms, certificate, nonce = randomBytes(24).toString('base64') } = options
  const binding = certificate === undefined ? undefined : endPoint(certificate)
  const isBound = binding !== undefined && mechanisms.includes('SCRAM-SHA-256-PLUS')
  if (!isBound && !mechanisms.includes('SCRAM-SHA-256')) return undefined
  // "y": we could bind, and the server does not offer it (RFC 5802 §6).
  const header = isBound ? 'p=tls-server-end-point,,' : binding === undefined ? 'n,,' : 'y,,'
  const bare = `n=,r=${nonce}`
  let expected: Buffer | undefined

  return {
    mechanism: isBound ? 'SCRAM-SHA-256-PLUS' : 'SCRAM-SHA-256',
    first: `${header}${bare}`,
    async answer(serverFirst) {
      const { combined, salt, iterations } = parseFirst(serverFirst, nonce)
      const channel = isBound ? Buffer.concat([Buffer.from(header), binding]) : Buffer.from(header)
      const withoutProof = `c=${base64(channel)},r=${combined}`
      const signed = `${bare},${serverFirst},${withoutProof}`
      const salted = await deriveKey(password.normalize('NFKC'), salt, iterations, KEY_BYTES, 'sha256')
      const clientKey = hmac(salted, 'Client Key')
      const signature = hmac(sha256(clientKey), signed)
      expected = hmac(hmac(salted, 'Server Key'), signed)
      const proof = Buffer.from(clientKey.map((byte, at) => byte ^ (signature[at] ?? 0)))
      return `${withoutProof},p=${base64(proof)}`
    },
    verify(serverFinal) {
      const given = Buffer.from(/^v=([A-Za-z\d+/=]{1,200})(,|$)/.exec(serverFinal)?.[1] ?? '', 'base64')
      if (expected === undefined || given.length !== expected.length || !timingSafeEqual(given, expected)) {
        throw upstreamProtocol('a signature of the login that is wrong')
      }
    },
  }
}

function parseFirst(message: string, nonce: string) {
  const [, combined = '', salt = '', count = ''] =
    /^r=([!-+\--~]+),s=([A-Za-z\d+/]+={0,2}),i=([1-9]\d{0,8})(?:,|$)/.exec(message) ?? []
  const iterations = Number(count)
  const isNew = combined.startsWith(nonce) && combined.length > nonce.length
  if (message.length > MOST_TEXT || !isNew || iterations < 1 || iterations > MOST_ITERATIONS) {
    throw upstreamProtocol('a challenge of the login')
  }
  return { combined, salt: Buffer.from(salt, 'base64'), iterations }
}

/** The hash of the certificate by which its signature was made; SHA-256 in place of older ones. Undefined where there is no such one. */
function endPoint(der: Buffer): Buffer | undefined {
  const { signatureAlgorithm = '' } = new X509Certificate(der)
  const [, bits] = /sha-?(1|224|256|384|512)(?!\d)/i.exec(signatureAlgorithm) ?? []
  if (bits === undefined) return undefined
  return createHash(bits === '1' ? 'sha256' : `sha${bits}`)
    .update(der)
    .digest()
}
