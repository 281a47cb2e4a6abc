import { randomInt } from 'node:crypto'
import { badStartup, Refusal, upstreamProtocol } from '../refusal.ts'
import { cursorOf, uint16, uint32, withLength, zeroEnded } from './packets.ts'

/** The two packets of the connection phase ("Protocol::HandshakeV10", "Protocol::HandshakeResponse41"). */

/** "Capabilities Flags". */
export const Flag = {
  connectWithDb: 1 << 3,
  compress: 1 << 5,
  localFiles: 1 << 7,
  protocol41: 1 << 9,
  ssl: 1 << 11,
  secureConnection: 1 << 15,
  pluginAuth: 1 << 19,
  connectAttributes: 1 << 20,
  authWithLength: 1 << 21,
  zstd: 1 << 26,
  queryAttributes: 1 << 27,
  multiFactor: 1 << 28,
  verifyCertificate: 1 << 30,
} as const

/**
 * Not between the child and the proxy: TLS, compression, and files of the child, for which a server may ask whenever it likes
 * (MySQL 8.4 manual, 8.1.6 "Security Considerations for LOAD DATA LOCAL").
 */
const WITHHELD =
  Flag.ssl | Flag.compress | Flag.zstd | Flag.localFiles | Flag.multiFactor | Flag.verifyCertificate
const NEEDED = Flag.protocol41 | Flag.secureConnection | Flag.pluginAuth

export const NATIVE = 'mysql_native_password'
const SCRAMBLE_BYTES = 20

export interface Greeting {
  readonly version: Buffer
  /** With which `KILL` ends a query. */
  readonly threadId: number
  readonly flags: number
  readonly charset: number
  readonly status: number
  /** MariaDB's own flags, and what else stands there. */
  readonly reserved: Buffer
  readonly scramble: Buffer
  readonly method: string
}

/** Throws `Refusal`. */
export function parseGreeting(payload: Buffer): Greeting {
  const cursor = cursorOf(payload, upstreamProtocol)
  if (cursor.uint8() !== 10) throw upstreamProtocol('another version of the protocol')
  const version = cursor.text()
  const threadId = cursor.uint32()
  const first = cursor.bytes(8)
  cursor.bytes(1)
  const low = cursor.uint16()
  const charset = cursor.uint8()
  const status = cursor.uint16()
  const flags = (low | (cursor.uint16() << 16)) >>> 0
  const length = cursor.uint8()
  const reserved = cursor.bytes(10)
  if ((flags & NEEDED) !== (NEEDED | 0)) throw upstreamProtocol('a server that is older than MySQL 5.7')
  const second = cursor.bytes(Math.max(13, length - 8)).subarray(0, SCRAMBLE_BYTES - first.length)
  // Some servers leave out its end.
  const rest = cursor.left === 0 ? Buffer.alloc(0) : cursor.bytes(cursor.left)
  const method = rest.toString('latin1').split('\0')[0] ?? ''
  return {
    version,
    threadId,
    flags,
    charset,
    status,
    reserved,
    scramble: Buffer.concat([first, second]),
    method,
  }
}

/** What the child may use: all that the server can, but for what the proxy withholds. */
export const offeredFlags = ({ flags }: Pick<Greeting, 'flags'>) => (flags & ~WITHHELD) >>> 0

/** The same greeting with a scramble of ours. */
export function greetingFor(greeting: Greeting, scramble: Buffer): Buffer {
  const flags = offeredFlags(greeting)
  return Buffer.concat([
    Buffer.of(10),
    zeroEnded(greeting.version),
    uint32(greeting.threadId),
    zeroEnded(scramble.subarray(0, 8)),
    uint16(flags & 0xffff),
    Buffer.of(greeting.charset),
    uint16(greeting.status),
    uint16(flags >>> 16),
    Buffer.of(SCRAMBLE_BYTES + 1),
    greeting.reserved,
    zeroEnded(scramble.subarray(8)),
    zeroEnded(NATIVE),
  ])
}

/** Printable, and none of the characters that clients treat as an end. */
export function newScramble(): Buffer {
  return Buffer.from(Array.from({ length: SCRAMBLE_BYTES }, () => randomInt(0x25, 0x7f)))
}

export interface Response {
  readonly flags: number
  readonly maxPacket: Buffer
  readonly charset: number
  readonly filler: Buffer
  readonly answer: Buffer
  readonly database: string
  readonly method: string
  readonly attributes: Buffer | undefined
}

const HEAD_BYTES = 32

/** Throws `Refusal`. */
export function parseResponse(payload: Buffer): Response {
  const cursor = cursorOf(payload, badStartup)
  const flags = cursor.uint32()
  if ((flags & Flag.protocol41) === 0) throw badStartup('it speaks the protocol of before MySQL 4.1')
  const [maxPacket, charset, filler] = [cursor.bytes(4), cursor.uint8(), cursor.bytes(23)]
  if (payload.length === HEAD_BYTES && (flags & Flag.ssl) !== 0) throw noTls()
  cursor.text()
  const hasLength = (flags & Flag.authWithLength) !== 0
  const hasShortLength = (flags & Flag.secureConnection) !== 0
  const answer = hasLength
    ? cursor.withLength()
    : hasShortLength
      ? cursor.bytes(cursor.uint8())
      : cursor.text()
  const database = (flags & Flag.connectWithDb) !== 0 && cursor.left > 0 ? cursor.text() : Buffer.alloc(0)
  const method =
    (flags & Flag.pluginAuth) !== 0 && cursor.left > 0 ? cursor.text().toString('latin1') : NATIVE
  const hasAttributes = (flags & Flag.connectAttributes) !== 0 && cursor.left > 0
  const attributes = hasAttributes ? cursor.withLength() : undefined
  return {
    flags,
    maxPacket,
    charset,
    filler,
    answer,
    database: database.toString('utf8'),
    method,
    attributes,
  }
}

const noTls = () =>
  new Refusal(
    'bad_startup',
    'The client asks for TLS, which the proxy on this machine does not have.',
    'Turn TLS off in the client (--skip-ssl, ssl-mode=DISABLED); the proxy has it towards the server.',
  )

export interface LoginAs {
  readonly user: string
  readonly database: string
  readonly answer: Buffer
  readonly method: string
}

/** The flags of the login upstream: what the child chose decides how the rest of the session looks. */
function flagsFor(greeting: Greeting, { flags, attributes }: Response, database: string): number {
  const chosen = flags & offeredFlags(greeting) & ~(Flag.connectWithDb | Flag.connectAttributes)
  const withDatabase = database === '' ? 0 : Flag.connectWithDb
  const withAttributes = attributes === undefined ? 0 : Flag.connectAttributes
  return (chosen | NEEDED | (greeting.flags & Flag.authWithLength) | withDatabase | withAttributes) >>> 0
}

const headOf = (flags: number, { maxPacket, charset, filler }: Response) =>
  Buffer.concat([uint32(flags), maxPacket, Buffer.of(charset), filler])

/** Before TLS ("Protocol::SSLRequest"). */
export function tlsRequest(greeting: Greeting, response: Response, database: string): Buffer {
  return headOf(flagsFor(greeting, response, database) | Flag.ssl, response)
}

export function responseFor(
  greeting: Greeting,
  response: Response,
  login: LoginAs,
  isSecured: boolean,
): Buffer {
  const flags = flagsFor(greeting, response, login.database) | (isSecured ? Flag.ssl : 0)
  return Buffer.concat([
    headOf(flags, response),
    zeroEnded(login.user),
    withLength(login.answer),
    login.database === '' ? Buffer.alloc(0) : zeroEnded(login.database),
    zeroEnded(login.method),
    response.attributes === undefined ? Buffer.alloc(0) : withLength(response.attributes),
  ])
}
