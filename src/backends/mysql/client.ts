import type { Socket } from 'node:net'
import type { AuthPlugin, Pool, PoolConnection, PoolOptions } from 'mysql2'
import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, type Fault, misconfigured } from '../../domain/backend-error.ts'
import { boundReplies, checkedSocket, connectionError } from '../../egress/network.ts'
import type { Host } from '../kind.ts'
import { tlsOf } from '../server-fields.ts'
import type { Config } from './config.ts'

const MOST = 8
const IDLE_MS = 30_000

export type Row = Readonly<Record<string, unknown>>

export interface Session {
  /** Statements of our own, in one round trip. Returns the rows of each. */
  run(...statements: readonly string[]): Promise<readonly (readonly Row[])[]>
}

/** Connections of one purpose: issuing and revoking have their own, so that blocked issues hold back no revocation. */
export interface Connections extends AsyncDisposable {
  /**
   * Throws `BackendError`. When the work fails or `signal` fires, the connection is closed, which releases its locks once the
   * server has finished the statement under way.
   */
  use<T>(signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
}

export async function connect(settings: Config, host: Host): Promise<Connections> {
  const { default: mysql } = await import('mysql2')
  const closed = new AbortController()
  const bounds = new WeakMap<PoolConnection, () => void>()
  let pool: Pool | undefined

  function open(): Pool {
    const opened = mysql.createPool({
      ...optionsOf(settings, host),
      authPlugins: loginMethods(settings, mysql),
    })
    // After the login, when the stream is the one that decrypts.
    opened.on('connection', (connection: PoolConnection) =>
      bounds.set(connection, boundReplies((connection as unknown as { stream: Socket }).stream)),
    )
    return opened
  }

  return {
    async use(caller, work) {
      const signal = AbortSignal.any([caller, closed.signal, AbortSignal.timeout(host.timeoutMs)])
      try {
        signal.throwIfAborted()
        pool ??= open()
        const connection = await checkOut(pool, signal)
        return await withConnection(connection, signal, bounds.get(connection), work)
      } catch (error) {
        throw toBackendError(error, signal)
      }
    },
    async [Symbol.asyncDispose]() {
      closed.abort()
      const ending = pool
      pool = undefined
      await new Promise<void>((resolve) => (ending === undefined ? resolve() : ending.end(() => resolve())))
    },
  }
}

function optionsOf(settings: Config, host: Host): PoolOptions {
  const tls = tlsOf(settings)
  const isVerified = tls === 'verify-full'
  const ca = settings.ca === undefined ? {} : { ca: settings.ca }
  return {
    host: settings.host,
    port: settings.port,
    user: settings.username,
    ...(settings.password === undefined ? {} : { password: settings.password }),
    ...(tls === 'disable'
      ? {}
      : { ssl: { rejectUnauthorized: isVerified, verifyIdentity: isVerified, ...ca } }),
    stream: () => {
      const socket = checkedSocket(host, { local: settings.local, givesLogin: !isVerified })
      socket.setNoDelay(true).setKeepAlive(true)
      socket.connect(settings.port, settings.host)
      // The library does not pass an IP address on to TLS, which would then expect a certificate of "localhost".
      return Object.assign(socket, { _host: settings.host })
    },
    connectTimeout: host.timeoutMs,
    connectionLimit: MOST,
    // One stays open: the holders of credentials may take every other connection of the server.
    maxIdle: 1,
    idleTimeout: IDLE_MS,
    multipleStatements: true,
    // A server could ask for files (MySQL 8.4 manual, 8.1.6 "Security Considerations for LOAD DATA LOCAL").
    flags: ['-LOCAL_FILES'],
    connectAttributes: { program_name: 'mayfly' },
    disableEval: true,
  }
}

const IN_CLEAR =
  'MySQL asks for the password itself, which Mayfly sends only to a server whose certificate it has verified ("tls": "verify-full").'

/**
 * `caching_sha2_password` sends the password, under a key that anybody could have made, where the server has not cached its hash
 * (MySQL 8.4 manual, 8.4.1.2); `sha256_password` always does. Over loopback nobody is in between.
 */
function loginMethods(
  settings: Config,
  { authPlugins }: typeof import('mysql2'),
): Record<string, AuthPlugin> {
  if (tlsOf(settings) === 'verify-full' || (tlsOf(settings) === 'disable' && settings.local)) return {}
  const refuse = () => {
    throw misconfigured(IN_CLEAR)
  }
  return {
    caching_sha2_password: authPlugins.caching_sha2_password({
      overrideIsSecure: false,
      onServerPublicKey: refuse,
    }),
    sha256_password: () => refuse,
  }
}

/** A connection that arrives after the caller has gone returns to the pool. */
function checkOut(pool: Pool, signal: AbortSignal): Promise<PoolConnection> {
  const arriving = new Promise<PoolConnection>((resolve, reject) =>
    pool.getConnection((error, connection) => (error === null ? resolve(connection) : reject(error))),
  )
  return unlessAborted(arriving, signal, (connection) => connection.release())
}

async function withConnection<T>(
  connection: PoolConnection,
  signal: AbortSignal,
  replied: (() => void) | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const cut = () => {
    ;(connection as unknown as { stream: Socket }).stream.destroy()
    reject(signal.reason)
  }
  signal.addEventListener('abort', cut, { once: true })
  const run = (...statements: readonly string[]) =>
    new Promise<readonly (readonly Row[])[]>((resolve, fail) => {
      connection.query(statements.join(';\n'), (error, replies) => {
        replied?.()
        if (error !== null) return fail(error)
        const each = statements.length === 1 ? [replies] : replies
        resolve((each as unknown[]).map((reply) => (Array.isArray(reply) ? (reply as Row[]) : [])))
      })
    })
  try {
    const result = await Promise.race([work({ run }), aborted])
    signal.throwIfAborted()
    connection.release()
    return result
  } catch (error) {
    connection.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', cut)
  }
}

const PRIVILEGE = 'MySQL refused: the account that Mayfly uses lacks a privilege.'

const LOGIN = [1045, 1698, 1862]

/**
 * By the number of an error that the server sent (MySQL 8.4, "Server Error Message Reference"; MariaDB, "MariaDB Error Code
 * Reference"). Any other is the answer of a server that works.
 */
const BY_NUMBER: readonly [readonly number[], Fault, string][] = [
  [LOGIN, 'denied', 'MySQL refused the login.'],
  [[1129, 1130], 'denied', 'MySQL refuses logins from this address.'],
  [[1044, 1142, 1143, 1227, 1370, 1410], 'denied', PRIVILEGE],
  [[1095], 'denied', 'MySQL refused to end a session: the account that Mayfly uses lacks CONNECTION ADMIN.'],
  [[1049], 'misconfigured', 'A database that is to be granted does not exist.'],
  [[1146], 'unsupported', 'A scope names a table that does not exist.'],
  [[1064, 1193], 'misconfigured', 'The server is older than MariaDB 10.5 and MySQL 8.0.'],
  [
    [1819],
    'misconfigured',
    'A password validation plugin refuses hashes: set strict_password_validation=OFF.',
  ],
  [[3159], 'misconfigured', 'The server requires TLS; see "tls".'],
  [[1040, 1203, 1226], 'unavailable', 'MySQL has no connection left.'],
  [[1053, 1152, 1158, 1159, 1160, 1161, 1927, 3032], 'unavailable', 'MySQL closed the connection.'],
  [[1290, 1836, 3100], 'unavailable', 'MySQL only reads: it is a replica, or was made read-only.'],
  [[1205, 1213], 'denied', 'MySQL refused: another session holds a lock that is needed.'],
]

/** The number of an error that the server sent, else `undefined`. */
export function numberOf(error: unknown): number | undefined {
  if (error instanceof BackendError) return numberOf(error.cause)
  if (!(error instanceof Error) || !('sqlState' in error) || !('errno' in error)) return undefined
  return typeof error.errno === 'number' ? error.errno : undefined
}

/** By the number, or by the code of the client library; never by the words of the server, which go to `detail`. */
export function toBackendError(error: unknown, signal?: AbortSignal): BackendError {
  if (error instanceof BackendError) return error
  const number = signal?.aborted === true ? undefined : numberOf(error)
  const text = error instanceof Error ? error.message : 'unknown'
  const options = { detail: `${number ?? 'client'}: ${text}`, cause: error }
  if (number !== undefined) {
    const [, fault, message] = BY_NUMBER.find(([numbers]) => numbers.includes(number)) ?? []
    return new BackendError(fault ?? 'denied', message ?? 'MySQL answered with an error.', {
      ...options,
      login: LOGIN.includes(number),
    })
  }
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'HANDSHAKE_NO_SSL_SUPPORT') {
    return misconfigured('The MySQL server does not offer TLS; see "tls".', options)
  }
  // The library puts this in the place of the code that Node gave.
  if (code === 'HANDSHAKE_SSL_ERROR' && /certificate|altnames/i.test(text)) {
    return misconfigured('MySQL has a certificate that is not trusted.', options)
  }
  if (code === 'AUTH_SWITCH_PLUGIN_ERROR') {
    return misconfigured('MySQL asks for a login method that Mayfly does not use.', options)
  }
  return connectionError(error, 'MySQL', signal)
}
