import { Socket } from 'node:net'
import type { ClientConfig, Connection, Pool, PoolClient, QueryResult } from 'pg'
import { MAX_UPSTREAM_BYTES } from '../../domain/limits.ts'
import { BackendError, type Host } from '../kind.ts'
import { type Config, tlsOf } from './config.ts'
import { toBackendError } from './faults.ts'
import type { Connections, Row, Session } from './session.ts'

const MAIN_POOL = 4
const OTHER_POOL = 2
const IDLE_MS = 30_000
/** `privilege_not_granted`: a GRANT that granted nothing is only a warning to PostgreSQL. */
const NOT_GRANTED = '01007'

/** Connections of one purpose: issuing and revoking have their own, so that blocked issues hold back no revocation. */
export async function connect(settings: Config, host: Host): Promise<Connections> {
  const { default: pg } = await import('pg')
  let asked = false
  class BoundedClient extends pg.Client {
    constructor(options?: ClientConfig) {
      let inClear = false
      // A function, so that neither PGPASSWORD nor ~/.pgpass of the server's own account is ever tried.
      super({ ...options, password: () => passwordFor(settings, inClear) })
      boundReplies(this.connection)
      this.connection.on('authenticationSASL', () => {
        asked = true
      })
      for (const event of ['authenticationCleartextPassword', 'authenticationMD5Password']) {
        this.connection.on(event, () => {
          asked = true
          inClear = true
        })
      }
    }
  }
  const pools = new Map<string, Pool>()
  const closed = new AbortController()

  function poolOf(database: string): Pool {
    const known = pools.get(database)
    if (known !== undefined) return known
    const pool = new pg.Pool({
      ...clientOptions(settings, host, database),
      Client: BoundedClient,
      max: database === settings.database ? MAIN_POOL : OTHER_POOL,
      // One stays open: the holder of a credential may take every connection left, and must still be ended.
      min: database === settings.database ? 1 : 0,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    })
    // Without a listener a lost idle connection would end the process.
    pool.on('error', (error) => host.log.debug({ detail: error.message }, 'an idle connection was lost'))
    pools.set(database, pool)
    return pool
  }

  async function use<T>(
    database: string,
    caller: AbortSignal,
    work: (session: Session) => Promise<T>,
  ): Promise<T> {
    const signal = AbortSignal.any([caller, closed.signal, AbortSignal.timeout(host.timeoutMs)])
    try {
      signal.throwIfAborted()
      const client = await checkOut(poolOf(database), signal)
      return await withClient(client, signal, work)
    } catch (error) {
      throw toBackendError(error, signal)
    }
  }

  return {
    timeoutMs: host.timeoutMs,
    use,
    keepOne: async (signal) => {
      if (poolOf(settings.database).totalCount === 0)
        await use(settings.database, signal, async () => undefined)
    },
    get askedPassword() {
      return asked
    },
    async [Symbol.asyncDispose]() {
      closed.abort()
      const ending = [...pools.values()]
      pools.clear()
      await Promise.all(ending.map((pool) => pool.end()))
    },
  }
}

/**
 * SCRAM (RFC 5802) never sends the password. The older methods do, in clear or as an MD5 hash that is as good, so they are
 * only for a server whose certificate was verified. Throws `BackendError`.
 */
function passwordFor(settings: Config, inClear: boolean): string {
  if (inClear && tlsOf(settings) !== 'verify-full') throw new BackendError('misconfigured', IN_CLEAR)
  return settings.password ?? ''
}

const IN_CLEAR =
  'PostgreSQL asks for the password in clear or as an MD5 hash, which Mayfly sends only to a server whose certificate it has verified ("tls": "verify-full"). Set password_encryption to scram-sha-256 on the server, and set the password of the role again.'

function clientOptions(settings: Config, host: Host, database: string) {
  const tls = tlsOf(settings)
  return {
    host: settings.host,
    port: settings.port,
    database,
    user: settings.username,
    application_name: 'mayfly',
    connectionTimeoutMillis: host.timeoutMs,
    keepAlive: true,
    ssl: tls === 'disable' ? false : { rejectUnauthorized: tls === 'verify-full', ...caOf(settings) },
    stream: () => checkedSocket(settings, host),
  }
}

function caOf(settings: Config): { ca?: string } {
  return settings.ca === undefined ? {} : { ca: settings.ca }
}

/** Connects to the address that the egress rules accepted; TLS still checks the configured name. */
function checkedSocket(settings: Config, host: Host): Socket {
  const socket = new Socket()
  const connectTo = socket.connect.bind(socket)
  const connectChecked = (port: number, hostname: string): Socket => {
    host.resolve(hostname, { local: settings.local }).then(
      (address) => {
        if (!socket.destroyed) connectTo(port, address)
      },
      (error: Error) => socket.destroy(error),
    )
    return socket
  }
  return Object.assign(socket, { connect: connectChecked })
}

/**
 * The client library accepts a message of any length from any peer, requested or not. No reply to our own statements comes
 * near the bound.
 */
function boundReplies(connection: Connection): void {
  let taken = 0
  const watch = () => {
    const { stream } = connection
    stream.on('data', (chunk: Buffer) => {
      taken += chunk.length
      if (taken > MAX_UPSTREAM_BYTES) {
        stream.destroy(new BackendError('unavailable', 'The reply of PostgreSQL is too long.'))
      }
    })
  }
  watch()
  // From then on another stream, which decrypts.
  connection.on('sslconnect', watch)
  connection.on('readyForQuery', () => {
    taken = 0
  })
}

/** A connection that arrives after the caller has gone returns to the pool. */
async function checkOut(pool: Pool, signal: AbortSignal): Promise<PoolClient> {
  const arriving = pool.connect()
  const { promise: gone, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([arriving, gone])
  } catch (error) {
    arriving.then(
      (client) => client.release(),
      () => undefined,
    )
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

async function withClient<T>(
  client: PoolClient,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  let released = false
  const release = (destroy: boolean) => {
    if (released) return
    released = true
    client.release(destroy)
  }
  const refused: string[] = []
  const onNotice = (notice: { code?: string | undefined }) => {
    if (notice.code === NOT_GRANTED) refused.push(notice.code)
  }
  const onAbort = () => release(true)
  const onError = () => undefined
  client.on('notice', onNotice)
  // A connection that breaks while checked out fails its query as well; this only keeps the process alive.
  client.on('error', onError)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const result = await work(sessionOf(client, refused))
    signal.throwIfAborted()
    release(false)
    return result
  } catch (error) {
    // Its state is unknown: a transaction may be open. Closing it rolls that back.
    release(true)
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
    client.off('notice', onNotice)
    if (!signal.aborted) client.off('error', onError)
  }
}

function sessionOf(client: PoolClient, refused: readonly string[]): Session {
  async function answered<T>(replying: Promise<T>): Promise<T> {
    try {
      return await replying
    } finally {
      // Also of a reply that was cut short: of many tables, there is a warning each.
      requireGranted(refused)
    }
  }
  return {
    async query(text, values = []) {
      // The extended protocol takes one statement only: nothing can be smuggled in behind a semicolon.
      const query = { text, values: [...values], queryMode: 'extended' }
      return (await answered(client.query<Row>(query))).rows
    },
    async run(statements) {
      const text = statements.join(';\n')
      const results: QueryResult<Row> | QueryResult<Row>[] = await answered(client.query<Row>(text))
      return (
        (Array.isArray(results) ? results.findLast(({ fields }) => fields.length > 0) : results)?.rows ?? []
      )
    },
  }
}

function requireGranted(refused: readonly string[]): void {
  if (refused.length === 0) return
  throw new BackendError('denied', 'The role that Mayfly uses cannot grant that privilege on to others.', {
    detail: NOT_GRANTED,
  })
}
