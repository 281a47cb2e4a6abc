import { createServer, type Socket } from 'node:net'

export interface PostgresScript {
  readonly host: string
  readonly port: number
  close(): void
}

/** Stands in for a server that answers whatever is said first in its own way: what no real one would do. */
export async function startPostgresScript(answer: (socket: Socket) => void): Promise<PostgresScript> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => open.delete(socket))
    socket.once('data', () => answer(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    host: '127.0.0.1',
    port: address.port,
    close() {
      for (const socket of open) socket.destroy()
      server.close()
    },
  }
}

/** An ErrorResponse of 2 GiB, as fast as it is taken. */
export function flood(socket: Socket): void {
  socket.write('E\x7f\xff\xff\xff', 'latin1')
  const more = () => {
    while (!socket.destroyed && socket.write(Buffer.alloc(65_536)));
  }
  socket.on('drain', more)
  more()
}

/** The same, 4 KiB each millisecond at most. */
export function drip(socket: Socket): void {
  socket.write('E\x7f\xff\xff\xff', 'latin1')
  const dripping = setInterval(() => socket.write(Buffer.alloc(4_096)), 1)
  socket.on('close', () => clearInterval(dripping))
}
