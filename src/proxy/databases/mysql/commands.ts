import type { Change } from '../copy.ts'
import { badStartup } from '../refusal.ts'
import { packet } from './packets.ts'

const CHANGE_USER = 0x11
const QUERY = 0x03
const LONGEST = 0xffffff
const HEAD_BYTES = 4

/** At most 128 characters (MySQL 8.4, 15.6.7.5 "SIGNAL Statement"). */
const NO_CHANGE =
  "SIGNAL SQLSTATE '0A000' SET MESSAGE_TEXT = 'Mayfly: a session keeps its user. Reset it (COM_RESET_CONNECTION) or open a new one.'"

/**
 * Watches the commands of the child. In place of a change of the user, for which the child has no password, the server gets a
 * statement that fails with a message of ours: so the error arrives in its turn, whatever is under way.
 */
export function watchCommands({ hasQueryAttributes }: { readonly hasQueryAttributes: boolean }): Change {
  // A server that reads attributes of queries expects their number first: none, of one set ("COM_QUERY").
  const attributes = hasQueryAttributes ? Buffer.of(0, 1) : Buffer.alloc(0)
  const refusal = packet(0, Buffer.concat([Buffer.of(QUERY), attributes, Buffer.from(NO_CHANGE)]))
  let head = Buffer.alloc(0)
  let left = 0
  let isContinued = false
  let isDropped = false

  /** How many bytes of a packet's begin have to be seen before it may go on. */
  const needed = () => HEAD_BYTES + (isContinued ? 0 : 1)

  function begin(): Buffer | undefined {
    const length = head.readUIntLE(0, 3)
    const wasContinued = isContinued
    isContinued = length === LONGEST
    if (wasContinued) {
      left = length
      return isDropped ? undefined : head
    }
    // Answers in the middle of a command belong to what is not offered: files of the child, and other users.
    if (head[3] !== 0 || length === 0) throw badStartup('it sends a packet that is no command')
    left = length - 1
    isDropped = head[4] === CHANGE_USER
    return isDropped ? refusal : head
  }

  return (chunk) => {
    const pieces: Buffer[] = []
    for (let at = 0; at < chunk.length; ) {
      if (left > 0) {
        const part = chunk.subarray(at, at + left)
        if (!isDropped) pieces.push(part)
        left -= part.length
        at += part.length
        continue
      }
      const part = chunk.subarray(at, at + needed() - head.length)
      head = Buffer.concat([head, part])
      at += part.length
      if (head.length < needed()) break
      const piece = begin()
      if (piece !== undefined) pieces.push(piece)
      head = Buffer.alloc(0)
    }
    return joined(chunk, pieces)
  }
}

/** Most often nothing was changed or held back, and the chunk goes on as one piece. */
function joined(chunk: Buffer, pieces: readonly Buffer[]): readonly Buffer[] {
  if (pieces.length < 2) return pieces
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return total <= 65_536 || total !== chunk.length ? [Buffer.concat(pieces)] : pieces
}
