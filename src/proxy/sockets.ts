import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { resetConnection } from '../egress/reset-connection.ts'

/** The TCP connection under a TLS socket that was made by us. */
const under = new WeakMap<TLSSocket, Socket>()
const over = new WeakMap<Socket, TLSSocket>()

export function rememberUnder(secure: TLSSocket, raw: Socket): void {
  under.set(secure, raw)
  over.set(raw, secure)
}

export function rawOf(socket: Socket): Socket {
  return (socket instanceof TLSSocket ? under.get(socket) : undefined) ?? socket
}

/** Ends it at once, with RST where it is TCP: nobody takes what arrived before for complete. */
export function reset(socket: Socket): void {
  // First the connection itself: TLS would say goodbye, and the kernel end it in peace.
  const raw = rawOf(socket)
  // A Unix socket has no address, and cannot be reset.
  if (raw.remoteAddress === undefined) raw.destroy()
  else resetConnection(raw, over.get(raw) ?? socket)
  socket.destroy()
}

/** A socket without a listener for errors ends the process. */
export function ignoreErrors(socket: { on(event: 'error', listener: () => void): unknown }): void {
  socket.on('error', () => undefined)
}
