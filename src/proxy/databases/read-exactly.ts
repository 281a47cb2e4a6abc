import type { Socket } from 'node:net'

/** The other end closed the connection, or it broke, before all had arrived. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
}

/**
 * So many bytes, once they are there; what follows stays in the socket. Throws `ConnectionLost`, the error of the socket, or the
 * reason of the signal.
 */
export async function readExactly(socket: Socket, count: number, signal: AbortSignal): Promise<Buffer> {
  if (count === 0) return Buffer.alloc(0)
  for (;;) {
    signal.throwIfAborted()
    const bytes: Buffer | null = socket.read(count)
    if (bytes?.length === count) return bytes
    if (bytes !== null || socket.readableEnded || socket.destroyed) throw lostOf(socket)
    await nextEvent(socket, signal)
  }
}

/** Returns at the next bytes, and throws as above. */
export async function readSome(socket: Socket, signal: AbortSignal): Promise<Buffer> {
  for (;;) {
    signal.throwIfAborted()
    const bytes: Buffer | null = socket.read()
    if (bytes !== null) return bytes
    if (socket.readableEnded || socket.destroyed) throw lostOf(socket)
    await nextEvent(socket, signal)
  }
}

const lostOf = (socket: Socket) => socket.errored ?? new ConnectionLost('the connection was closed')

function nextEvent(socket: Socket, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'close'] as const
    const done = () => {
      for (const event of events) socket.off(event, done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    for (const event of events) socket.on(event, done)
    signal.addEventListener('abort', done)
  })
}
