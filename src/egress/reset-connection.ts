import type { Socket } from 'node:net'

/**
 * Ends a TCP connection with RST. `secure`: the TLS over it. Not while its end is being sent: libuv refuses that, and Node then
 * leaves the socket open without a word, and waits for it at its own end, for ever and on a whole processor.
 */
export function resetConnection(raw: Socket, secure: Socket = raw): void {
  if (raw.destroyed) return
  if (isEnding(raw) || isEnding(secure)) raw.destroy()
  else raw.resetAndDestroy()
}

/** As long as something is to be written before it, the end itself is not under way. */
const isEnding = ({ writableEnded, writableFinished, writableLength }: Socket) =>
  writableEnded && !writableFinished && writableLength === 0
