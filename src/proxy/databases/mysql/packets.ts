import type { Socket } from 'node:net'
import { readExactly } from '../read-exactly.ts'
import { type Refusal, type RefusalCode, upstreamProtocol } from '../refusal.ts'

/** Packets of the protocol of MySQL and MariaDB (MySQL Internals, "MySQL Packets"; MariaDB, "Client/Server Protocol"). */

export interface Packet {
  readonly sequence: number
  readonly payload: Buffer
}

/** Of one that is sent during the login. */
const MAX_PAYLOAD = 65_536

/** Throws what `refuse` makes of one that is too long. */
export async function readPacket(
  socket: Socket,
  signal: AbortSignal,
  refuse: (what: string) => Refusal = upstreamProtocol,
): Promise<Packet> {
  const head = await readExactly(socket, 4, signal)
  const length = head.readUIntLE(0, 3)
  if (length > MAX_PAYLOAD) throw refuse(`a packet of ${length} bytes`)
  return { sequence: head[3] ?? 0, payload: await readExactly(socket, length, signal) }
}

export function packet(sequence: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUIntLE(payload.length, 0, 3)
  head[3] = sequence & 0xff
  return Buffer.concat([head, payload])
}

export const zeroEnded = (value: string | Buffer) => Buffer.concat([Buffer.from(value), Buffer.alloc(1)])

export function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}

/** A length, and so many bytes ("Length-Encoded Strings"). */
export function withLength(bytes: Buffer): Buffer {
  const head =
    bytes.length < 251 ? Buffer.of(bytes.length) : Buffer.concat([Buffer.of(0xfc), uint16(bytes.length)])
  return Buffer.concat([head, bytes])
}

/** Reads what a packet consists of, and throws for one that ends too early. */
export interface Cursor {
  bytes(count: number): Buffer
  uint8(): number
  uint16(): number
  uint32(): number
  /** Up to a zero byte. */
  text(): Buffer
  withLength(): Buffer
  readonly left: number
}

export function cursorOf(payload: Buffer, refuse: (what: string) => Refusal): Cursor {
  let at = 0
  const bytes = (count: number) => {
    if (at + count > payload.length) throw refuse('a packet that ends too early')
    at += count
    return payload.subarray(at - count, at)
  }
  return {
    bytes,
    uint8: () => bytes(1).readUInt8(),
    uint16: () => bytes(2).readUInt16LE(),
    uint32: () => bytes(4).readUInt32LE(),
    text() {
      const end = payload.indexOf(0, at)
      if (end < 0) throw refuse('a text without an end')
      const text = bytes(end - at)
      at += 1
      return text
    },
    withLength() {
      const first = bytes(1).readUInt8()
      if (first < 251) return bytes(first)
      if (first === 0xfc) return bytes(bytes(2).readUInt16LE())
      throw refuse('a text that is too long')
    },
    get left() {
      return payload.length - at
    },
  }
}

/** Numbers and states of errors, by which drivers decide whether to try again (MySQL 8.4, "Server Error Message Reference"). */
const ERRORS: Partial<Record<RefusalCode, [number, string]>> = {
  bad_startup: [1043, '08S01'],
  credential_ended: [1045, '28000'],
  database_not_permitted: [1044, '42000'],
  too_many_connections: [1040, '08004'],
  wrong_placeholder: [1045, '28000'],
}
const CONNECTION_FAILED: [number, string] = [1158, '08S01']

/** `isEarly`: before the client has said that it knows states of errors. */
export function errorPacket(sequence: number, { code, message, hint }: Refusal, isEarly: boolean): Buffer {
  const [number, state] = ERRORS[code] ?? CONNECTION_FAILED
  const text = `${isEarly ? '' : `#${state}`}Mayfly: ${message} ${hint}`
  return packet(sequence, Buffer.concat([Buffer.of(0xff), uint16(number), Buffer.from(text)]))
}
