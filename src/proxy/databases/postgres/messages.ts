import type { Socket } from 'node:net'
import { readExactly } from '../read-exactly.ts'
import { type Refusal, type RefusalCode, upstreamProtocol } from '../refusal.ts'

/** Messages of PostgreSQL's protocol 3.0 (PostgreSQL 18, chapter 54 "Frontend/Backend Protocol"). */

export interface Message {
  /** One letter. */
  readonly type: string
  readonly body: Buffer
}

/** Of one that is sent during the login. Parameters and errors of a server are a few kB at most. */
const MAX_MESSAGE = 65_536

/** Throws what `refuse` makes of one that is too long. */
export async function readMessage(
  socket: Socket,
  signal: AbortSignal,
  {
    most = MAX_MESSAGE,
    refuse = upstreamProtocol,
  }: { most?: number; refuse?: (what: string) => Refusal } = {},
): Promise<Message> {
  const head = await readExactly(socket, 5, signal)
  const length = head.readUInt32BE(1)
  if (length < 4 || length > most) throw refuse(`a message of ${length} bytes`)
  return { type: String.fromCharCode(head[0] ?? 0), body: await readExactly(socket, length - 4, signal) }
}

export function message(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value >>> 0)
  return bytes
}

/** A packet without a type: a startup, or a request in place of one. */
export function untyped(...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([int32(body.length + 4), body])
}

export const text = (value: string) => Buffer.from(`${value}\0`, 'utf8')

/** PostgreSQL 18, appendix A. Drivers decide by these whether to try again. */
const STATES: Partial<Record<RefusalCode, string>> = {
  bad_startup: '08P01',
  credential_ended: '28000',
  database_not_permitted: '42501',
  login_timeout: '57014',
  no_sign_of_life: '57P03',
  replication_not_permitted: '0A000',
  too_many_connections: '53300',
  upstream_timeout: '57P03',
  upstream_unreachable: '57P03',
  wrong_placeholder: '28P01',
}

export function errorMessage({ code, message: what, hint }: Refusal): Buffer {
  const fields = { S: 'FATAL', V: 'FATAL', C: STATES[code] ?? '08004', M: `Mayfly: ${what}`, H: hint }
  return message('E', ...Object.entries(fields).map(([field, value]) => text(`${field}${value}`)), '\0')
}
