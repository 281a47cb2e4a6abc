import { once } from 'node:events'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { Redis } from 'ioredis'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, type Fault } from '../../domain/backend-error.ts'
import { boundReplies, checkedSocket, connectionError } from '../../egress/network.ts'
import type { Host } from '../kind.ts'
import { tlsOf } from '../server-fields.ts'
import type { Config } from './config.ts'

/** A user without any right. It is there, also after a restart, where Mayfly has saved the users of the server. */
export const SAVED = 'mayfly-saved'

/** The names of some hundred thousand users. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024

export interface Client extends AsyncDisposable {
  /**
   * One command. All share a connection, on which the server carries them out in order, also those for whose answer nobody waits
   * any more. Throws `BackendError`.
   */
  call(signal: AbortSignal, ...command: readonly [string, ...string[]]): Promise<unknown>
}

export function createClient(settings: Config, host: Host, login = true): Client {
  const closed = new AbortController()
  let current: Promise<Connection> | undefined

  function connection(): Promise<Connection> {
    if (current !== undefined) return current
    // Others wait for it, too: no caller's own signal.
    const signal = AbortSignal.any([closed.signal, AbortSignal.timeout(host.timeoutMs)])
    const opening = open(settings, host, login, signal)
    const forget = () => {
      if (current === opening) current = undefined
    }
    current = opening
    opening.then(({ redis }) => redis.once('end', forget), forget)
    return opening
  }

  return {
    async call(caller, ...command) {
      const timeout = AbortSignal.timeout(host.timeoutMs)
      const signal = AbortSignal.any([caller, closed.signal, timeout])
      let used: Redis | undefined
      try {
        signal.throwIfAborted()
        const { redis, replied } = await unlessAborted(connection(), signal)
        used = redis
        const [name, ...rest] = command
        return await unlessAborted(redis.call(name, ...rest).finally(replied), signal)
      } catch (error) {
        // A server that hangs: the next command tries another connection.
        if (timeout.aborted) used?.disconnect()
        throw toBackendError(error, signal)
      }
    },
    async [Symbol.asyncDispose]() {
      closed.abort()
      await current?.then(
        ({ redis }) => redis.disconnect(),
        () => undefined,
      )
    },
  }
}

/**
 * Writes the ACL file, and into it that Mayfly has done so: one call serves all that wait for it. Redis 7.0 needs some 0.5 ms for
 * each user and does nothing else meanwhile, so this takes at most a tenth of its time.
 */
export function createSaver(client: Client, host: Host): (signal: AbortSignal) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<void> | undefined
  async function saveNow(): Promise<void> {
    next = undefined
    const before = performance.now()
    const signal = AbortSignal.timeout(host.timeoutMs)
    const marking = client.call(signal, 'ACL', 'SETUSER', SAVED)
    const saving = Promise.all([marking, client.call(signal, 'ACL', 'SAVE')])
    last = saving
      .catch(() => undefined)
      .then(() => delay(9 * (performance.now() - before), undefined, { ref: false }))
    await saving
  }
  return async (signal) => {
    next ??= last.then(saveNow)
    await unlessAborted(next, signal)
  }
}

interface Connection {
  readonly redis: Redis
  readonly replied: () => void
}

async function open(settings: Config, host: Host, login: boolean, signal: AbortSignal): Promise<Connection> {
  const { AbstractConnector, Redis } = await import('ioredis')
  const stream = await dial(settings, host, signal)
  const replied = boundReplies(stream, MAX_REPLY_BYTES)
  class Dialled extends AbstractConnector {
    constructor() {
      super(0)
    }
    override async connect() {
      this.stream = stream as typeof this.stream
      return this.stream
    }
  }
  const redis = new Redis({
    Connector: Dialled,
    lazyConnect: true,
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
    retryStrategy: null,
  })
  // What fails, fails its commands as well; this only keeps the process alive.
  redis.on('error', () => undefined)
  try {
    await unlessAborted(redis.connect(), signal)
    const { username, password } = settings
    if (login && password !== undefined) await unlessAborted(redis.call('AUTH', username, password), signal)
    replied()
    return { redis, replied }
  } catch (error) {
    redis.disconnect()
    throw toBackendError(error, signal)
  }
}

async function dial(settings: Config, host: Host, signal: AbortSignal): Promise<Duplex> {
  const tls = tlsOf(settings)
  const socket = checkedSocket(host, { local: settings.local, givesLogin: tls !== 'verify-full' })
  socket.setNoDelay(true).setKeepAlive(true)
  try {
    socket.connect(settings.port, settings.host)
    await once(socket, 'connect', { signal })
    if (tls === 'disable') return socket
    const secured = connectTls({
      socket,
      host: settings.host,
      ...(isIP(settings.host) === 0 ? { servername: settings.host } : {}),
      rejectUnauthorized: tls === 'verify-full',
      ...(settings.ca === undefined ? {} : { ca: settings.ca }),
    })
    await once(secured, 'secureConnect', { signal })
    return secured
  } catch (error) {
    socket.destroy()
    throw toBackendError(error, signal)
  }
}

const LOGIN = /^(WRONGPASS|NOAUTH)|AUTH.* called without any password/
export const NO_FILE = /^ERR.*not configured to use an ACL file/

/** By the first word of an error that the server sent, and what follows `ERR` (Redis, "RESP protocol spec", Simple errors). */
const BY_TEXT: readonly [RegExp, Fault, string][] = [
  [LOGIN, 'denied', 'Redis refused the login.'],
  [/^DENIED/, 'denied', 'Redis runs in protected mode, and refuses logins from this address.'],
  [/^NOPERM/, 'denied', 'Redis refused: the user that Mayfly uses lacks a permission.'],
  [NO_FILE, 'misconfigured', 'The Redis server has no ACL file; see "persist".'],
  [
    /^ERR (unknown|Unknown)|^ERR Error in ACL SETUSER modifier/,
    'misconfigured',
    'The server is older than Redis 7.0.',
  ],
  [
    /^(LOADING|BUSY|MASTERDOWN|TRYAGAIN)|max number of clients/,
    'unavailable',
    'Redis cannot take the request at this time.',
  ],
  [/^/, 'denied', 'Redis answered with an error.'],
]

/** The words of an error that the server sent, else `undefined`. */
export function replyErrorOf(error: unknown): string | undefined {
  if (error instanceof BackendError) return replyErrorOf(error.cause)
  return error instanceof Error && error.name === 'ReplyError' ? error.message : undefined
}

function toBackendError(error: unknown, signal: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const said = signal.aborted ? undefined : replyErrorOf(error)
  if (said === undefined) return connectionError(error, 'Redis', signal)
  const known = BY_TEXT.find(([pattern]) => pattern.test(said))
  return new BackendError(known?.[1] ?? 'denied', known?.[2] ?? '', {
    detail: said,
    cause: error,
    login: LOGIN.test(said),
  })
}
