import type { Socket } from 'node:net'
import { readExactly, readSome } from '../read-exactly.ts'
import { badStartup } from '../refusal.ts'

/** Requests of clients of Redis and Valkey (Redis, "Redis serialization protocol specification": arrays of bulk strings). */

export const MAX_INLINE = 65_536
/** Of a request whose arguments are read: a login. */
export const MAX_COLLECTED = 16_384
const MAX_ARGUMENTS = 16
const MAX_HEADER = 32
/** proto-max-bulk-len, and PROTO_INLINE_MAX_SIZE and 1024*1024 arguments in networking.c. */
const MAX_BULK = 512 * 1_048_576
const MOST_BULKS = 1_048_576

/** As the server reads numbers (`string2ll`): no sign, no spaces, no leading zero. Throws `Refusal`. */
export function parseCount(text: string, most = MOST_BULKS): number {
  if (!/^(?:0|-?[1-9]\d{0,9})$/.test(text) || Number(text) > most)
    throw badStartup('it sends a number that is none')
  return Number(text)
}

export const parseLength = (text: string) => {
  const length = parseCount(text, MAX_BULK)
  if (length < 0) throw badStartup('it sends a length that is none')
  return length
}

/** Where the text after a `*` or `$` ends. Undefined: not there yet. Throws `Refusal`. */
export function headerAt(
  bytes: Buffer,
  at: number,
): { readonly text: string; readonly next: number } | undefined {
  const end = bytes.subarray(at, at + MAX_HEADER).indexOf(0x0d)
  if (end < 0) {
    if (bytes.length - at >= MAX_HEADER) throw badStartup('it sends a number that is none')
    return undefined
  }
  if (at + end + 1 >= bytes.length) return undefined
  if (bytes[at + end + 1] !== 0x0a) throw badStartup('it sends a line without an end')
  return { text: bytes.toString('latin1', at + 1, at + end), next: at + end + 2 }
}

/** A request on one line, as people type it. Quotes would make it ambiguous. Throws `Refusal`. */
export function parseInline(line: Buffer): readonly Buffer[] {
  const text = line.toString('latin1')
  if (/["'\0]/.test(text)) throw badStartup('it sends a line with quotes')
  return text
    .split(/\s+/)
    .filter((word) => word !== '')
    .map((word) => Buffer.from(word, 'latin1'))
}

export function encodeRequest(parts: readonly (Buffer | string)[]): Buffer {
  const pieces = parts.flatMap((part) => {
    const bytes = Buffer.from(part)
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
  })
  return Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...pieces])
}

/** The next request of a client that has not logged in: short ones only. What follows it stays in the socket. Throws `Refusal`. */
export async function readRequest(socket: Socket, signal: AbortSignal): Promise<readonly Buffer[]> {
  const line = await readLine(socket, signal)
  if (line[0] !== 0x2a) return parseInline(line)
  const count = parseCount(line.toString('latin1', 1), MAX_ARGUMENTS)
  const parts: Buffer[] = []
  let left = MAX_COLLECTED
  while (parts.length < count) {
    const head = await readLine(socket, signal)
    if (head[0] !== 0x24) throw badStartup('it sends an argument without a length')
    const length = parseCount(head.toString('latin1', 1), left)
    if (length < 0) throw badStartup('it sends a length that is none')
    left -= length
    const bytes = await readExactly(socket, length + 2, signal)
    parts.push(bytes.subarray(0, length))
  }
  return parts
}

async function readLine(socket: Socket, signal: AbortSignal): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let length = 0; length <= MAX_COLLECTED; ) {
    const piece = await readSome(socket, signal)
    const end = piece.indexOf(0x0a)
    pieces.push(end < 0 ? piece : piece.subarray(0, end))
    if (end >= 0) {
      if (end + 1 < piece.length) socket.unshift(piece.subarray(end + 1))
      const line = Buffer.concat(pieces)
      return line.at(-1) === 0x0d ? line.subarray(0, -1) : line
    }
    length += piece.length
  }
  throw badStartup('it sends a line that is too long')
}
