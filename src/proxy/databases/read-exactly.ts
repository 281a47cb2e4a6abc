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
  return untilThere(socket, signal, () => {
    const bytes: Buffer | null = socket.read(count)
    // At its end a socket gives what is left.
    if (bytes !== null && bytes.length !== count) throw lostOf(socket)
    return bytes
  })
}

/** Returns at the next bytes, and throws as above. */
export async function readSome(socket: Socket, signal: AbortSignal): Promise<Buffer> {
  return untilThere(socket, signal, () => socket.read())
}

const EVENTS = ['readable', 'end', 'close'] as const

/** Tries at first, and whenever something has happened to the socket. */
async function untilThere(socket: Socket, signal: AbortSignal, read: () => Buffer | null): Promise<Buffer> {
  let news = Promise.withResolvers<void>()
  const tell = () => news.resolve()
  // Once for all tries: a listener that is added while a part is there is called at once, and nothing else would have its turn any more.
  for (const event of EVENTS) socket.on(event, tell)
  signal.addEventListener('abort', tell)
  try {
    for (;;) {
      signal.throwIfAborted()
      const bytes = read()
      if (bytes !== null) return bytes
      if (socket.readableEnded || socket.destroyed) throw lostOf(socket)
      await news.promise
      news = Promise.withResolvers<void>()
    }
  } finally {
    for (const event of EVENTS) socket.off(event, tell)
    signal.removeEventListener('abort', tell)
  }
}

const lostOf = (socket: Socket) => socket.errored ?? new ConnectionLost('the connection was closed')
