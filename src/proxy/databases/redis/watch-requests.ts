import type { Change } from '../copy.ts'
import { badStartup } from '../refusal.ts'
import {
  encodeRequest,
  headerAt,
  MAX_COLLECTED,
  MAX_INLINE,
  parseCount,
  parseInline,
  parseLength,
} from './requests.ts'
import { isWatched } from './translate.ts'

const STAR = 0x2a
const DOLLAR = 0x24
const LONGEST_NAME = 5

interface Found {
  /** Where the next thing to read begins. */
  readonly next: number
  /** In place of the bytes up to there. */
  readonly instead?: Buffer
  /** Bytes after `next` that are of no interest. */
  readonly skip?: number
  /** Arguments that follow those. */
  readonly args?: number
}

/**
 * Lets through what the child sends, but for the requests that change who a connection is: `translate` makes them anew, so that
 * their replies arrive in their turn. Only the begin of a request is ever held back, until it is known which one it is.
 */
export function watchRequests(translate: (parts: readonly Buffer[]) => Buffer): Change {
  let held = Buffer.alloc(0)
  let skip = 0
  let args = 0

  function take(bytes: Buffer, at: number): Found | undefined {
    if (args === 0) return beginAt(bytes, at, translate)
    const head = argumentAt(bytes, at)
    return head === undefined ? undefined : { next: head.next, skip: head.length + 2, args: args - 1 }
  }

  return (chunk) => {
    const bytes = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    held = Buffer.alloc(0)
    const pieces: Buffer[] = []
    let [from, at] = [0, 0]
    while (at < bytes.length) {
      if (skip > 0) {
        const step = Math.min(skip, bytes.length - at)
        skip -= step
        at += step
        continue
      }
      const found = take(bytes, at)
      if (found === undefined) {
        held = Buffer.from(bytes.subarray(at))
        break
      }
      if (found.instead !== undefined) {
        pieces.push(bytes.subarray(from, at), found.instead)
        from = found.next
      }
      at = found.next
      skip = found.skip ?? 0
      args = found.args ?? 0
    }
    pieces.push(bytes.subarray(from, at))
    return pieces.filter((piece) => piece.length > 0)
  }
}

function argumentAt(bytes: Buffer, at: number): { next: number; length: number } | undefined {
  if (at >= bytes.length) return undefined
  if (bytes[at] !== DOLLAR) throw badStartup('it sends an argument without a length')
  const head = headerAt(bytes, at)
  return head === undefined ? undefined : { next: head.next, length: parseLength(head.text) }
}

/** A request; undefined: it is not known yet which one it is. */
function beginAt(
  bytes: Buffer,
  at: number,
  translate: (parts: readonly Buffer[]) => Buffer,
): Found | undefined {
  if (bytes[at] !== STAR) return inlineAt(bytes, at, translate)
  const head = headerAt(bytes, at)
  if (head === undefined) return undefined
  const count = parseCount(head.text)
  if (count <= 0) return { next: head.next }
  const first = argumentAt(bytes, head.next)
  if (first === undefined) return undefined
  const end = first.next + first.length
  if (first.length > LONGEST_NAME) return { next: first.next, skip: first.length + 2, args: count - 1 }
  if (end > bytes.length) return undefined
  if (!isWatched(bytes.toString('latin1', first.next, end))) {
    return { next: first.next, skip: first.length + 2, args: count - 1 }
  }
  return collect(bytes, at, { from: head.next, count }, translate)
}

function collect(
  bytes: Buffer,
  start: number,
  { from, count }: { from: number; count: number },
  translate: (parts: readonly Buffer[]) => Buffer,
): Found | undefined {
  const parts: Buffer[] = []
  let at = from
  while (parts.length < count) {
    const part = argumentAt(bytes, at)
    const end = part === undefined ? Number.POSITIVE_INFINITY : part.next + part.length + 2
    if ((end === Number.POSITIVE_INFINITY ? bytes.length : end) - start > MAX_COLLECTED) {
      throw badStartup('it sends a login that is too long')
    }
    if (part === undefined || end > bytes.length) return undefined
    parts.push(bytes.subarray(part.next, part.next + part.length))
    at = end
  }
  return { next: at, instead: translate(parts) }
}

function inlineAt(
  bytes: Buffer,
  at: number,
  translate: (parts: readonly Buffer[]) => Buffer,
): Found | undefined {
  const end = bytes.indexOf(0x0a, at)
  if ((end < 0 ? bytes.length : end) - at > MAX_INLINE) throw badStartup('it sends a line that is too long')
  if (end < 0) return undefined
  const parts = parseInline(bytes.subarray(at, end))
  const [name] = parts
  if (name === undefined) return { next: end + 1, instead: Buffer.alloc(0) }
  const instead = isWatched(name.toString('latin1')) ? translate(parts) : encodeRequest(parts)
  return { next: end + 1, instead }
}
