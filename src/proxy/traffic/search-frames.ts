import type { Placeholder } from '../rules/asked.ts'
import type { PlaceholderSearch } from '../rules/placeholders.ts'

/** What a client sends once the connection is another protocol. */
export interface FrameSearch {
  /** The first placeholder that ends in this chunk. `unreadable`: it is compressed, or no frame at all. */
  push(chunk: Buffer): Placeholder | 'unreadable' | undefined
}

const EMPTY = Buffer.alloc(0)
/** Of extensions (RFC 6455 §5.2), of which none was agreed on. */
const RESERVED = 0x70
const CONTROL = 0x08
const MASKED = 0x80

/** Searches the frames of a WebSocket client, whose payload is masked (RFC 6455 §5.3), and the bytes as they are. */
export function openFrameSearch(search: PlaceholderSearch): FrameSearch {
  // A message may be in several frames, with others of control between them.
  const [raw, data, control] = [search.open(), search.open(), search.open()]
  let head: Buffer = EMPTY
  let frame: { readonly isControl: boolean; readonly mask: Buffer | undefined; at: number } | undefined
  let left = 0
  return {
    push(chunk) {
      let found = raw.push(chunk)
      for (let at = 0; at < chunk.length && found === undefined; ) {
        if (frame === undefined || left === 0) {
          const missing = headLength(head) - head.length
          head = Buffer.concat([head, chunk.subarray(at, at + missing)])
          at += missing
          if (head.length < headLength(head)) continue
          left = payloadLength(head)
          if ((byteOf(head, 0) & RESERVED) !== 0 || left > Number.MAX_SAFE_INTEGER) return 'unreadable'
          const isMasked = (byteOf(head, 1) & MASKED) !== 0
          frame = {
            isControl: (byteOf(head, 0) & CONTROL) !== 0,
            mask: isMasked ? head.subarray(-4) : undefined,
            at: 0,
          }
          head = EMPTY
          continue
        }
        const piece = chunk.subarray(at, at + left)
        const plain = frame.mask === undefined ? piece : unmasked(piece, frame.mask, frame.at)
        found = (frame.isControl ? control : data).push(plain)
        at += piece.length
        left -= piece.length
        frame.at += piece.length
      }
      return found
    },
  }
}

const byteOf = (bytes: Buffer, at: number) => bytes[at] ?? 0
const shortLength = (head: Buffer) => byteOf(head, 1) & 0x7f

/** As far as it is known: the first two bytes say how many more there are. */
function headLength(head: Buffer): number {
  if (head.length < 2) return 2
  const more = shortLength(head) === 126 ? 2 : shortLength(head) === 127 ? 8 : 0
  return 2 + more + ((byteOf(head, 1) & MASKED) === 0 ? 0 : 4)
}

function payloadLength(head: Buffer): number {
  if (shortLength(head) === 126) return head.readUInt16BE(2)
  return shortLength(head) === 127 ? Number(head.readBigUInt64BE(2)) : shortLength(head)
}

function unmasked(piece: Buffer, mask: Buffer, from: number): Buffer {
  const plain = Buffer.allocUnsafe(piece.length)
  for (let at = 0; at < piece.length; at += 1) plain[at] = byteOf(piece, at) ^ byteOf(mask, (from + at) & 3)
  return plain
}
