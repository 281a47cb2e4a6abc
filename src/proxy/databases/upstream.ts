import { once } from 'node:events'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { BackendError } from '../../domain/backend-error.ts'
import { isPermitted, resolveChecked } from '../../egress/address.ts'
import { onlyListeners } from '../../egress/listener.ts'
import { connectionError } from '../../egress/network.ts'
import { rememberUnder } from '../sockets.ts'
import type { Trust } from '../trust.ts'
import type { DatabaseParts } from './parts.ts'
import { Refusal } from './refusal.ts'

const KEEP_ALIVE_MS = 30_000

const NAMES = { postgres: 'PostgreSQL', mysql: 'MySQL', redis: 'Redis' } as const

type Parts = Pick<DatabaseParts, 'use' | 'resolver' | 'isLocal'>

/** `onSocket` gets the socket before it is connected, so that it can be cut in time. */
export interface ConnectOptions {
  readonly givesLogin: boolean
  readonly signal: AbortSignal
  readonly onSocket: (socket: Socket) => void
}

/** Throws `Refusal`. */
export function createConnect(parts: Parts): (options: ConnectOptions) => Promise<Socket> {
  const { use } = parts
  const checkListener = onlyListeners(use.accounts)
  return async ({ givesLogin, signal, onSocket }) => {
    try {
      const address = await resolveUpstream(parts)
      signal.throwIfAborted()
      const socket = connectSocket({
        ...{ host: address, port: use.port, allowHalfOpen: true, noDelay: true },
        ...{ keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS },
      })
      socket.on('error', () => undefined)
      onSocket(socket)
      await once(socket, 'connect', { signal })
      if (givesLogin) await checkListener(socket)
      return socket
    } catch (error) {
      throw upstreamRefusal(use.protocol, error, signal)
    }
  }
}

async function resolveUpstream({ use, resolver, isLocal }: Parts): Promise<string> {
  const lookup = (name: string) => resolver.addresses(name)
  const address = await resolveChecked(use.host, { local: use.local, lookup })
  // On another machine than Mayfly the loopback is not the one that was meant: the child could listen there.
  if (!isLocal && !isPermitted(address, false) && isLoopbackLike(address)) {
    throw new Refusal(
      'upstream_address',
      'The server has a loopback address, and Mayfly is on another machine.',
      'Give the backend an address that this machine reaches ("connect_host").',
    )
  }
  return address
}

/** Of the special addresses, all but those of a local link or network: also the forms of IPv6 that hide one of IPv4. */
const isLoopbackLike = (address: string) => !/^(?:169\.254\.|f[cd]|fe[89a-f])/i.test(address)

/** Throws `Refusal`. */
export async function secureUpstream(
  { use, trust }: Pick<Parts, 'use'> & { readonly trust: Trust },
  raw: Socket,
  signal: AbortSignal,
): Promise<Socket> {
  const isVerified = use.tls === 'verify-full'
  const secured = connectTls({
    ...{ socket: raw, host: use.host, rejectUnauthorized: isVerified, secureContext: trust(use.ca) },
    ...(isIP(use.host) === 0 ? { servername: use.host } : {}),
  })
  secured.on('error', () => undefined)
  rememberUnder(secured, raw)
  try {
    await once(secured, 'secureConnect', { signal })
    return secured
  } catch (error) {
    secured.destroy()
    throw upstreamRefusal(use.protocol, error, signal)
  }
}

/** Anything that failed between the proxy and the server. */
export function upstreamRefusal(
  protocol: DatabaseParts['use']['protocol'],
  error: unknown,
  signal?: AbortSignal,
): Refusal {
  if (error instanceof Refusal) return error
  const name = NAMES[protocol]
  const known = error instanceof BackendError ? error : connectionError(error, name, signal)
  if (known.fault === 'timeout') {
    return new Refusal('upstream_timeout', known.message, 'Check that the server works, and try again.')
  }
  if (known.reason === 'tls') {
    const hint =
      'Check "tls" and "ca" of the backend: the name and the authority have to be those of its certificate.'
    return new Refusal('upstream_tls', known.message, hint)
  }
  if (known.fault === 'misconfigured') {
    return new Refusal(
      'upstream_address',
      known.message,
      'Ask the administrator of Mayfly to change the backend.',
    )
  }
  const hint = `Check that the machine of the proxy reaches the server, and try again.`
  return new Refusal('upstream_unreachable', known.message, hint)
}
