import type { Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { ignoreErrors, rememberUnder, reset } from '../sockets.ts'
import type { Authority } from '../types.ts'

export type OnSecure = (secure: TLSSocket, protocol: 'h2' | 'http/1.1') => void

/** One TLS server for each leaf: only a server's socket can carry HTTP/2. It never listens. */
interface Secured {
  readonly server: Server
  /** By the ends of the TCP connection. */
  readonly waiting: Map<string, Waiting>
}

interface Waiting {
  readonly raw: Socket
  readonly onSecure: OnSecure
  readonly onDistrust: () => void
}

const HANDSHAKE_MS = 10_000

/** Of leaves, of which the authority keeps a bounded number. */
const known = new WeakMap<object, Secured>()

/**
 * TLS with a leaf of the run for this host. `onSecure` is not called where the handshake fails, `onDistrust` where a client says
 * that it does not trust the leaf of this host.
 */
export async function openSecure(
  authority: Authority,
  raw: Socket,
  host: string,
  { onSecure, onDistrust = () => {} }: Pick<Waiting, 'onSecure'> & Partial<Pick<Waiting, 'onDistrust'>>,
): Promise<void> {
  const leaf = await authority.leafFor(host)
  const ends = endsOf(raw)
  if (raw.destroyed || ends === undefined) {
    raw.destroy()
    return
  }
  const secured = known.get(leaf) ?? createSecured(leaf)
  known.set(leaf, secured)
  const timer = setTimeout(() => reset(raw), HANDSHAKE_MS)
  const forget = () => {
    clearTimeout(timer)
    secured.waiting.delete(ends)
  }
  secured.waiting.set(ends, {
    raw,
    onDistrust,
    onSecure: (secure, protocol) => {
      forget()
      onSecure(secure, protocol)
    },
  })
  raw.once('close', forget)
  secured.server.emit('connection', raw)
}

function createSecured(leaf: { readonly key: string; readonly cert: string }): Secured {
  const waiting = new Map<string, Waiting>()
  const server = createServer({
    ...{ key: leaf.key, cert: leaf.cert, minVersion: 'TLSv1.2' },
    ALPNProtocols: ['h2', 'http/1.1'],
  })
  server.on('secureConnection', (secure) => {
    ignoreErrors(secure)
    const found = waiting.get(endsOf(secure) ?? '')
    if (found === undefined) {
      secure.destroy()
      return
    }
    const { raw, onSecure } = found
    rememberUnder(secure, raw)
    raw.once('close', () => secure.destroy())
    secure.once('error', () => raw.destroy())
    onSecure(secure, secure.alpnProtocol === 'h2' ? 'h2' : 'http/1.1')
  })
  // Whose it was cannot be told of a client that has gone; all that wait here are of one host.
  server.on('tlsClientError', ({ code = '' }: NodeJS.ErrnoException) => {
    if (DISTRUST.test(code)) for (const { onDistrust } of waiting.values()) onDistrust()
  })
  return { server, waiting }
}

/** Alerts of a client that does not take the certificate. */
const DISTRUST = /ALERT_(?:UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_UNKNOWN)$/

/** No two open connections have the same. Undefined: it is gone. */
function endsOf({ remoteAddress, remotePort, localPort }: Socket): string | undefined {
  return remotePort === undefined ? undefined : `${remoteAddress} ${remotePort} ${localPort}`
}
