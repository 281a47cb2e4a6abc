import { isIP, connect as openTcp, type Socket } from 'node:net'
import { setImmediate as afterHandshake } from 'node:timers/promises'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { onlyListeners } from '../../../egress/listener.ts'
import { ignoreErrors, rememberUnder, reset } from '../../sockets.ts'
import type { Trust } from '../../trust.ts'
import { Failure } from '../failure.ts'
import { bareHost, type Destination } from './reach.ts'

export interface Connected {
  readonly socket: Socket
  /** What TLS agreed on; `http/1.1` without TLS. */
  readonly protocol: 'h2' | 'http/1.1'
}

export interface HowToConnect {
  readonly alpn: readonly string[]
  readonly timeoutMs: number
  /** Gets the TCP connection at once, so that it can be cut while it connects. */
  onSocket(raw: Socket): void
  readonly trust: Trust
  readonly connect?: ((address: string, port: number) => Socket) | undefined
}

const byTcp = (host: string, port: number) => openTcp({ host, port, noDelay: true })

/** Connects to the checked address; TLS proves the name. Throws `Failure`. */
export async function connectUpstream(
  to: Destination,
  address: string,
  how: HowToConnect,
): Promise<Connected> {
  const { connect = byTcp } = how
  const raw = connect(address, to.port)
  ignoreErrors(raw)
  how.onSocket(raw)
  const socket = to.scheme === 'http' ? raw : openTls(raw, to, how)
  await ready(socket, to.scheme === 'http' ? 'connect' : 'secureConnect', how.timeoutMs)
  if (to.scheme === 'http') await requireListener(raw, to)
  // Node says so from within OpenSSL: to destroy the socket there is a use of freed memory.
  if (to.scheme === 'https') await afterHandshake()
  const isHttp2 = to.scheme === 'https' && (socket as TLSSocket).alpnProtocol === 'h2'
  return { socket, protocol: isHttp2 ? 'h2' : 'http/1.1' }
}

/** Without TLS nothing proves who got the port: another account may have taken it. */
async function requireListener(raw: Socket, { accounts }: Destination): Promise<void> {
  try {
    await onlyListeners(accounts)(raw)
  } catch (cause) {
    reset(raw)
    throw new Failure('foreign_listener', { cause })
  }
}

function openTls(raw: Socket, to: Destination, { alpn, trust }: HowToConnect): TLSSocket {
  const host = bareHost(to.host)
  const secure = connectTls({
    socket: raw,
    // The name to prove, where the server name extension must be absent.
    host,
    ...(isIP(host) === 0 && { servername: host }),
    secureContext: trust(to.ca),
    ALPNProtocols: [...alpn],
    rejectUnauthorized: true,
  })
  rememberUnder(secure, raw)
  // Also before and after somebody else listens.
  ignoreErrors(secure)
  return secure
}

function ready(socket: Socket, event: 'connect' | 'secureConnect', timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (failure?: Failure) => {
      clearTimeout(timer)
      socket.off(event, onReady)
      socket.off('error', onError)
      socket.off('close', onClose)
      if (failure === undefined) resolve()
      else {
        reset(socket)
        reject(failure)
      }
    }
    const onReady = () => settle()
    const onError = (cause: Error) => settle(new Failure('unreachable', { cause }))
    const onClose = () => settle(new Failure('unreachable'))
    const timer = setTimeout(() => settle(new Failure('too_slow')), timeoutMs)
    socket.once(event, onReady)
    socket.on('error', onError)
    socket.once('close', onClose)
  })
}
