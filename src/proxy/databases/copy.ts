import type { Socket } from 'node:net'
import { createFlow } from '../flow.ts'
import { reset } from '../sockets.ts'

/** What goes on in place of what arrived. */
export type Change = (chunk: Buffer) => readonly Buffer[]

/**
 * Copies in both directions until both connections are closed. An end is passed on as an end, a broken connection as a broken
 * one. Throws what `change` throws; the child is still open then.
 */
export async function join(
  child: Socket,
  upstream: Socket,
  { change, lingerMs }: { readonly change?: Change | undefined; readonly lingerMs: number },
): Promise<void> {
  const failed = Promise.withResolvers<never>()
  copy(child, upstream, change, failed.reject)
  copy(upstream, child, undefined, failed.reject)
  const lingering = lingerAfter(child, upstream, lingerMs)
  try {
    await Promise.race([failed.promise, Promise.all([closed(child, upstream), closed(upstream, child)])])
  } catch (error) {
    reset(upstream)
    throw error
  } finally {
    lingering.stop()
  }
}

/** A target that is slow holds the source up, and a source that is fast gives way to the other connections. */
function copy(from: Socket, to: Socket, change: Change | undefined, onError: (error: unknown) => void): void {
  const flow = createFlow(from)
  const write = (chunk: Buffer) => flow.passed(chunk.length, !to.write(chunk))
  const writeChanged = (chunk: Buffer, by: Change) => {
    try {
      const pieces = by(chunk)
      if (pieces.length > 1) to.cork()
      for (const piece of pieces) write(piece)
      if (pieces.length > 1) to.uncork()
    } catch (error) {
      from.removeAllListeners('data')
      from.resume()
      onError(error)
    }
  }
  to.on('drain', flow.drained)
  from.once('end', () => to.end())
  from.on('data', change === undefined ? write : (chunk: Buffer) => writeChanged(chunk, change))
}

/** Resolves when `socket` is closed; `other` then has nobody to talk to. */
async function closed(socket: Socket, other: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  // What ended in peace has passed its end on, and the rest of it may still be on its way to `other`.
  if (socket.readableEnded && !other.destroyed && other.writableEnded) return
  reset(other)
}

/** Once one side has ended, the other may take its time, but not be silent for ever. */
function lingerAfter(child: Socket, upstream: Socket, lingerMs: number): { stop(): void } {
  let timer: NodeJS.Timeout | undefined
  let seen = -1
  const look = () => {
    const now = upstream.bytesRead + child.bytesWritten - child.writableLength
    if (now === seen) {
      reset(upstream)
      reset(child)
    }
    seen = now
  }
  const start = () => {
    timer ??= setInterval(look, lingerMs).unref()
  }
  child.once('end', start)
  upstream.once('end', start)
  return { stop: () => clearInterval(timer) }
}

/** A last word to the child. Waits until it has it, but not for long. */
export async function farewell(child: Socket, bytes: Buffer, waitMs = 2_000): Promise<void> {
  if (child.destroyed) return
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
  child.end(bytes)
  // Closing a connection with bytes that nobody read resets it, and the last word with it.
  child.resume()
  const timer = setTimeout(() => child.destroy(), waitMs)
  await gone
  clearTimeout(timer)
}
