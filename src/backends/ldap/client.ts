import { once } from 'node:events'
import { type connect as connectPlain, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectSecure } from 'node:tls'
import type { Client } from 'ldapts'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { boundReplies, checkedSocket, connectionError } from '../../egress/network.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

/** Result codes: RFC 4511, appendix A. Each is an answer, so nothing was changed; 51 and 52 say that nobody is served now. */
export const NO_SUCH_ATTRIBUTE = 16
export const VALUE_EXISTS = 20
export const NO_SUCH_OBJECT = 32
export const NOT_A_LEAF = 66
export const NEEDS_MEMBER = 65
export const ENTRY_EXISTS = 68

const FAULTS: ReadonlyMap<number, readonly [Fault, string]> = new Map([
  [
    4,
    ['misconfigured', 'The LDAP server limits the size of a search; raise the limit for the DN of Mayfly.'],
  ],
  [8, ['misconfigured', 'The LDAP server demands a stronger login.']],
  [10, ['misconfigured', 'The LDAP server is a replica and refers to another one.']],
  [13, ['misconfigured', 'The LDAP server demands TLS; see "tls".']],
  [NO_SUCH_OBJECT, ['misconfigured', 'The base, or a group, does not exist at the LDAP server.']],
  [34, ['misconfigured', 'The LDAP server says that a DN is not well formed.']],
  [48, ['denied', 'The LDAP server refused the login.']],
  [49, ['denied', 'The LDAP server refused the login: the DN or its password is wrong.']],
  [50, ['denied', 'The LDAP server refused: the DN of Mayfly lacks a permission.']],
  [51, ['unavailable', 'The LDAP server is busy.']],
  [52, ['unavailable', 'The LDAP server is shutting down.']],
  [53, ['denied', 'The LDAP server is unwilling to do this; it may only be read from.']],
  [
    NEEDS_MEMBER,
    [
      'misconfigured',
      'The schema of the LDAP server forbids this; a group may need another, permanent member.',
    ],
  ],
])

/** The result code of an answer, else `undefined`. */
export function codeOf(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined
}

/** Takes these answers for success. */
export const unless =
  (...codes: readonly number[]) =>
  (error: unknown): void => {
    const code = codeOf(error)
    if (code === undefined || !codes.includes(code)) throw error
  }

export function toBackendError(error: unknown, signal?: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const code = signal?.aborted === true ? undefined : codeOf(error)
  if (code === undefined) return connectionError(error, 'The LDAP server', signal)
  const [fault, message] = FAULTS.get(code) ?? ['denied', 'The LDAP server answered with an error.']
  const detail = `${code}: ${error instanceof Error ? error.message : ''}`
  return new BackendError(fault, message, { detail, cause: error, login: code === 48 || code === 49 })
}

export interface Connection extends AsyncDisposable {
  /**
   * Carries out requests side by side on one connection, which is made when it is needed. `reset` marks the end of a reply of
   * several. Throws `BackendError`.
   */
  use<T>(signal: AbortSignal, work: (client: Client, reset: () => void) => Promise<T>): Promise<T>
}

export function createConnection(settings: Config, host: Host): Connection {
  let current: Promise<Opened> | undefined
  let closing = new AbortController()
  const opened = async (): Promise<Opened> => {
    const known = current
    if (known !== undefined) {
      const one = await known
      if (one.isUsable()) return one
      if (current === known) current = undefined
    }
    current ??= open(settings, host, closing.signal).catch((error: unknown) => {
      current = undefined
      throw error
    })
    return current
  }
  /** A server that does not answer may be gone without a word: the next request tries another connection. */
  const leave = (left: Promise<Opened> | undefined) => {
    if (left === undefined || current !== left) return
    current = undefined
    const close = () => void left.then(({ close: end }) => end()).catch(() => undefined)
    // Other callers' requests may be under way.
    setTimeout(close, host.timeoutMs).unref()
  }
  return {
    async use(signal, work) {
      let mine: Promise<Opened> | undefined
      try {
        signal.throwIfAborted()
        const opening = opened()
        mine = current
        const { client, reset } = await unlessAborted(opening, signal)
        mine = current
        signal.throwIfAborted()
        const result = await unlessAborted(work(client, reset), signal)
        reset()
        return result
      } catch (error) {
        if (codeOf(error) === undefined && !(error instanceof BackendError)) leave(mine)
        throw toBackendError(error, signal)
      }
    },
    async [Symbol.asyncDispose]() {
      current = undefined
      closing.abort()
      closing = new AbortController()
    },
  }
}

interface Opened {
  readonly client: Client
  /** Counts the bytes of a reply from zero again. */
  readonly reset: () => void
  readonly isUsable: () => boolean
  readonly close: () => void
}

async function open(settings: Config, host: Host, closing: AbortSignal): Promise<Opened> {
  const { Client: LdapClient } = await import('ldapts')
  const hostname = new URL(settings.url).hostname.replace(/^\[|\]$/g, '')
  const tlsOptions = {
    ...{ host: hostname, ...(isIP(hostname) === 0 && { servername: hostname }) },
    ...(settings.ca !== undefined && { ca: settings.ca }),
  }
  const isSecure = settings.url.startsWith('ldaps://')
  const upgrades = !isSecure && settings.tls === 'verify-full'
  const plain = await dial(settings, host, { hostname, givesLogin: !isSecure && !upgrades, closing })
  // The library sends at once over a socket that is open, so the certificate is checked before it gets one.
  const socket = isSecure
    ? await secured(plain, tlsOptions, AbortSignal.any([closing, AbortSignal.timeout(host.timeoutMs)]))
    : plain
  let reset = () => {}
  let isTaken = false
  const connectOnce = (): Socket => {
    // The library would make a new connection by itself and send a password there: without a login, and without StartTLS.
    if (isTaken) throw new Error('the connection was lost')
    isTaken = true
    return socket
  }
  let stream: Socket | undefined
  const bounded = <S extends Socket>(made: S): S => {
    reset = boundReplies(made)
    stream = made
    return made
  }
  // After StartTLS the library does not notice the end of the connection.
  const isUsable = () => client.isBound && stream?.destroyed === false && !stream.readableEnded
  const client = new LdapClient({
    ...{ url: settings.url, timeout: host.timeoutMs, connectTimeout: host.timeoutMs },
    ...(isSecure && { tlsOptions }),
    createConnection: (() => (upgrades ? connectOnce() : bounded(connectOnce()))) as typeof connectPlain,
    createSecureConnection: ((port: number | object) =>
      bounded(
        typeof port === 'number' ? connectOnce() : connectSecure({ ...port, ...tlsOptions }),
      )) as unknown as typeof connectSecure,
  })
  const close = () => {
    closing.removeEventListener('abort', close)
    client.unbind().catch(() => undefined)
    socket.destroySoon()
  }
  closing.addEventListener('abort', close, { once: true })
  try {
    closing.throwIfAborted()
    if (upgrades) await client.startTLS(tlsOptions)
    await client.bind(settings.bind_dn, settings.bind_password)
  } catch (error) {
    close()
    throw error
  }
  return { client, reset: () => reset(), isUsable, close }
}

interface Dialling {
  readonly hostname: string
  readonly givesLogin: boolean
  readonly closing: AbortSignal
}

/** A connection to the checked address; TLS checks the configured name. */
async function dial(
  { url, local }: Config,
  host: Host,
  { hostname, givesLogin, closing }: Dialling,
): Promise<Socket> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(host.timeoutMs)])
  const { port, protocol } = new URL(url)
  const socket = checkedSocket(host, { local, givesLogin })
  try {
    socket.connect(port === '' ? (protocol === 'ldaps:' ? 636 : 389) : Number(port), hostname)
    await once(socket, 'connect', { signal })
    return socket
  } catch (error) {
    socket.destroy()
    throw toBackendError(error, signal)
  }
}

/** TLS over a connected socket, once the certificate has been found to be the server's. */
async function secured(socket: Socket, options: ConnectionOptions, signal: AbortSignal): Promise<Socket> {
  const secure = connectSecure({ ...options, socket })
  try {
    await once(secure, 'secureConnect', { signal })
    return secure
  } catch (error) {
    secure.destroy()
    throw toBackendError(error, signal)
  }
}

/** RFC 3062 §2. */
const PASSWORD_MODIFY = '1.3.6.1.4.1.4203.1.11.1'

/** Lets the server hash and store the password in its own way; without `dn`, the password of this login. */
export async function setPassword(client: Client, dn: string | undefined, password: string): Promise<void> {
  const fields = [...(dn === undefined ? [] : [ber(0x80, Buffer.from(dn))]), ber(0x82, Buffer.from(password))]
  await client.exop(PASSWORD_MODIFY, ber(0x30, Buffer.concat(fields)))
}

/** One value of up to 64 KiB in BER (X.690 §8.1.3). */
function ber(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 128 ? [length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
