import { isIP, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { BackendError, misconfigured, unavailable } from '../domain/backend-error.ts'
import { MAX_UPSTREAM_BYTES } from '../domain/limits.ts'

/** How connections find their way, under the egress rules. */
export interface Network {
  /**
   * The checked address to connect to: `held`, the address of an open connection, while the name still has it. Throws
   * `BackendError` for loopback and metadata addresses unless `local`.
   */
  resolve(hostname: string, options: { local: boolean; held?: string }): Promise<string>
  /**
   * Throws `BackendError` if the socket is connected to a loopback address where an account of this machine listens that may not
   * have the login of this backend. Call it before anything is sent that gives the login to the listener: all but SCRAM and
   * verified TLS. `fetch` does it by itself.
   */
  checkListener(socket: Socket): Promise<void>
}

/** How often an open connection asks whether its name still has its address. */
const FOLLOW_MS = 30_000

interface CheckedSocketOptions {
  readonly local: boolean
  /** What is sent gives Mayfly's login to the listener: neither SCRAM nor verified TLS protects it. */
  readonly givesLogin: boolean
  readonly followMs?: number
}

/**
 * A socket that connects to the address that the egress rules accept; TLS still checks the configured name. Once the name has
 * moved it closes: at the next look if it was quiet since the last one, and one look later if not.
 */
export function checkedSocket(
  host: Network,
  { local, givesLogin, followMs = FOLLOW_MS }: CheckedSocketOptions,
): Socket {
  const socket = new Socket()
  if (givesLogin) holdUntil(socket, host.checkListener)
  const connectTo = socket.connect.bind(socket)
  const connectChecked = (port: number, hostname: string): Socket => {
    host.resolve(hostname, { local }).then(
      (address) => {
        if (socket.destroyed) return
        connectTo(port, address)
        if (isIP(hostname) === 0) follow(socket, (held) => host.resolve(hostname, { local, held }), followMs)
      },
      (error: Error) => socket.destroy(error),
    )
    return socket
  }
  return Object.assign(socket, { connect: connectChecked })
}

/**
 * Lets nobody learn that the socket is connected, and sends and delivers nothing, before `check` has found that the other end
 * may have what is sent. A failed check destroys the socket.
 */
export function holdUntil(socket: Socket, check: (socket: Socket) => Promise<void>): void {
  // A listener of this event keeps the data back; once it is gone they flow as they would have.
  const keep = () => undefined
  socket.on('readable', keep)
  socket.cork()
  const release = () => {
    Reflect.deleteProperty(socket, 'emit')
    socket.emit('connect')
    socket.emit('ready')
    socket.off('readable', keep)
    socket.uncork()
  }
  const checkNow = async () => {
    try {
      await check(socket)
      if (!socket.destroyed) release()
    } catch (error) {
      socket.destroy(error instanceof Error ? error : undefined)
    }
  }
  const emit = socket.emit.bind(socket)
  Object.assign(socket, {
    emit: (event: string, ...values: unknown[]) => {
      if (event === 'connect') void checkNow()
      return event === 'connect' || event === 'ready' || emit(event, ...values)
    },
  })
}

function follow(socket: Socket, resolve: (held: string) => Promise<string>, everyMs: number): void {
  let seen = 0
  let hasMoved = false
  const look = async () => {
    const { remoteAddress: held, bytesRead, bytesWritten } = socket
    if (held === undefined) return
    // Nobody knows better: the connection works, so it stays.
    const now = await resolve(held).catch(() => held)
    const isQuiet = bytesRead + bytesWritten === seen
    if (now !== held && (isQuiet || hasMoved)) socket.destroy()
    hasMoved = now !== held
    seen = bytesRead + bytesWritten
  }
  const timer = setInterval(() => void look(), everyMs).unref()
  socket.once('close', () => clearInterval(timer))
}

/**
 * Destroys the stream when more arrives than the longest reply, requested or not. Returns what to call at the end of each
 * reply, to count from zero again.
 */
export function boundReplies(stream: Duplex, most = MAX_UPSTREAM_BYTES): () => void {
  let taken = 0
  stream.on('data', (chunk: Buffer) => {
    taken += chunk.length
    if (taken > most) {
      stream.destroy(unavailable('The reply of the upstream is too long.', { reason: 'bad_answer' }))
    }
  })
  return () => {
    taken = 0
  }
}

/** Codes of Node's TLS for a certificate that is not trusted or of another name. */
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/
const TIMEOUT = /^(ETIMEDOUT|ERR_SOCKET_CONNECTION_TIMEOUT)$/
const HANDSHAKE = /^(ERR_SSL|ERR_TLS|EPROTO)/

/** A connection that failed, by the code of the error. `upstream` begins the message: "PostgreSQL". */
export function connectionError(error: unknown, upstream: string, signal?: AbortSignal): BackendError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'no code'
  const detail = `${code}: ${error instanceof Error ? error.message : 'unknown'}`
  const options = { detail, cause: error }
  if (signal?.aborted === true || TIMEOUT.test(code)) {
    return new BackendError('timeout', `${upstream} did not answer in time.`, options)
  }
  if (CERTIFICATE.test(code)) {
    return misconfigured(`${upstream} has a certificate that is not trusted.`, {
      ...options,
      reason: 'tls',
    })
  }
  const reason = code === 'ECONNREFUSED' ? 'refused' : HANDSHAKE.test(code) ? 'tls' : 'unreachable'
  return unavailable(`${upstream} cannot be reached.`, { ...options, reason })
}
