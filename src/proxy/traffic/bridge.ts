import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { BodyMask } from '../mask/mask.ts'
import { reset } from '../sockets.ts'
import { pump } from './body.ts'
import type { Line } from './line.ts'

export interface Bridge {
  /** Of the client. */
  readonly socket: Socket
  readonly upstream: Socket
  readonly line: Line
  readonly idleMs: number
  /** For what the upstream sends. */
  readonly masking: BodyMask | undefined
  /** Whether what the client sends may go on; false: it has ended both. */
  readonly mayPass?: ((chunk: Buffer) => boolean) | undefined
}

const NOTHING = Buffer.alloc(0)
/** What the mask holds back goes on then: it may be the end of a message. */
const SILENCE_MS = 50

/** Copies bytes both ways until one side ends, breaks or is silent for too long, then ends the line. */
export function bridge({ socket, upstream, line, idleMs, masking, mayPass }: Bridge): void {
  const idle = setTimeout(() => {
    line.reason = 'too_slow'
    reset(socket)
    reset(upstream)
  }, idleMs)
  const silence = setTimeout(() => {
    const rest = masking?.release() ?? NOTHING
    if (rest.length > 0 && socket.writable) socket.write(rest)
  }, SILENCE_MS)
  join(upstream, socket, {
    onChunk: (chunk) => {
      idle.refresh()
      line.bytesReceived += chunk.length
      if (masking === undefined) return chunk
      silence.refresh()
      return masking.write(chunk)
    },
    onEnd: () => masking?.end(),
  })
  join(socket, upstream, {
    onChunk: (chunk) => {
      idle.refresh()
      line.bytesSent += chunk.length
      return mayPass?.(chunk) === false ? NOTHING : chunk
    },
    onEnd: () => undefined,
  })
  socket.once('close', () => {
    clearTimeout(idle)
    clearTimeout(silence)
    upstream.destroy()
    line.end()
  })
}

/** One direction. What breaks on one side breaks the other. */
function join(from: Socket, to: Socket, { onChunk, onEnd }: Parameters<typeof pump>[2]): void {
  let hasEnded = false
  pump(from as Duplex, to, {
    onChunk,
    onEnd: () => {
      hasEnded = true
      return onEnd()
    },
  })
  from.once('error', () => reset(to))
  from.once('close', () => {
    if (!hasEnded) reset(to)
  })
  from.resume()
}
