import type { ClientConfig, Pool, PoolClient, QueryResult } from 'pg'
import { unlessAborted } from '../../domain/abort.ts'
import { denied, misconfigured } from '../../domain/backend-error.ts'
import { boundReplies, checkedSocket } from '../../egress/network.ts'
import type { Host } from '../kind.ts'
import { tlsOf } from '../server-fields.ts'
import type { Config } from './config.ts'
import { toBackendError } from './faults.ts'

const MAIN_POOL = 8
const OTHER_POOL = 2
const IDLE_MS = 30_000

export type Row = Readonly<Record<string, unknown>>

export interface Session {
  /** One statement, perhaps the administrator's. */
  query(text: string): Promise<void>
  /** Several statements of our own, in one round trip. Returns the rows of the last one that has any. */
  run(statements: readonly string[]): Promise<readonly Row[]>
}

/** Connections of one purpose: issuing and revoking have their own, so that blocked issues hold back no revocation. */
export interface Connections extends AsyncDisposable {
  /** The statements that begin a transaction. */
  readonly begin: readonly string[]
  /** Throws `BackendError`. When `signal` fires the connection is cut, which rolls back what is open. */
  use<T>(database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>
  /** The statements in one transaction and one round trip. Throws `BackendError`. */
  transact(database: string, signal: AbortSignal, statements: readonly string[]): Promise<readonly Row[]>
  /** Opens a connection if there is none: it stays open, for when the server has none left. Throws `BackendError`. */
  keepOne(signal: AbortSignal): Promise<void>
  /** Whether the server has asked for the password: one that trusts everybody never does. */
  readonly askedPassword: boolean
}

/** Names are looked up in pg_catalog alone, so that no foreign operator runs with our rights. */
function beginning(timeoutMs: number): readonly string[] {
  // Two statements may each wait this long: nothing is under way for longer than one call.
  const each = Math.floor(timeoutMs / 2)
  return [
    'BEGIN',
    'SET LOCAL search_path = pg_catalog',
    'SET LOCAL client_min_messages = warning',
    `SET LOCAL statement_timeout = ${each}`,
    `SET LOCAL lock_timeout = ${Math.floor(each / 2)}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${timeoutMs}`,
  ]
}

export async function connect(settings: Config, host: Host): Promise<Connections> {
  const { default: pg } = await import('pg')
  let asked = false
  class BoundedClient extends pg.Client {
    constructor(options?: ClientConfig) {
      let inClear = false
      // A function, so that neither PGPASSWORD nor ~/.pgpass of the server's own account is ever tried.
      const password = () => {
        asked = true
        return passwordFor(settings, inClear)
      }
      super({ ...options, password })
      for (const event of ['authenticationCleartextPassword', 'authenticationMD5Password']) {
        this.connection.on(event, () => {
          inClear = true
        })
      }
      const bounds = [boundReplies(this.connection.stream)]
      // From then on another stream, which decrypts.
      this.connection.on('sslconnect', () => bounds.push(boundReplies(this.connection.stream)))
      this.connection.on('readyForQuery', () => {
        for (const replied of bounds) replied()
      })
      // A connection that breaks while checked out fails its query as well; this only keeps the process alive.
      this.on('error', () => undefined)
    }
  }
  const pools = new Map<string, Pool>()
  const closed = new AbortController()

  function poolOf(database: string): Pool {
    const known = pools.get(database)
    if (known !== undefined) return known
    const isMain = database === settings.database
    const pool = new pg.Pool({
      ...clientOptions(settings, host, database),
      Client: BoundedClient,
      max: isMain ? MAIN_POOL : OTHER_POOL,
      // One stays open: the holder of a credential may take every connection left, and must still be ended.
      min: isMain ? 1 : 0,
      idleTimeoutMillis: IDLE_MS,
      allowExitOnIdle: true,
    })
    // Without a listener a lost idle connection would end the process.
    pool.on('error', (error) => host.log.debug({ detail: error.message }, 'an idle connection was lost'))
    pools.set(database, pool)
    return pool
  }

  const connections: Connections = {
    begin: beginning(host.timeoutMs),
    async use(database, caller, work) {
      const signal = AbortSignal.any([caller, closed.signal, AbortSignal.timeout(host.timeoutMs)])
      try {
        signal.throwIfAborted()
        // A connection that arrives after the caller has gone returns to the pool.
        const arriving = poolOf(database).connect()
        const client = await unlessAborted(arriving, signal, (late) => late.release())
        return await withClient(client, signal, work)
      } catch (error) {
        throw toBackendError(error, signal)
      }
    },
    transact: (database, signal, statements) =>
      connections.use(database, signal, (session) =>
        session.run([...connections.begin, ...statements, 'COMMIT']),
      ),
    async keepOne(signal) {
      if (poolOf(settings.database).totalCount > 0) return
      await connections.use(settings.database, signal, async () => undefined)
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
  return connections
}

const IN_CLEAR =
  'PostgreSQL asks for the password in clear or as an MD5 hash, which Mayfly sends only to a server whose certificate it has verified ("tls": "verify-full"). Set password_encryption to scram-sha-256 on the server, and set the password of the role again.'

/**
 * SCRAM (RFC 5802) never sends the password. The older methods do, in clear or as an MD5 hash that is as good, so they are
 * only for a server whose certificate was verified. Throws `BackendError`.
 */
function passwordFor(settings: Config, inClear: boolean): string {
  if (inClear && tlsOf(settings) !== 'verify-full') throw misconfigured(IN_CLEAR)
  return settings.password ?? ''
}

function clientOptions(settings: Config, host: Host, database: string) {
  const tls = tlsOf(settings)
  const ca = settings.ca === undefined ? {} : { ca: settings.ca }
  return {
    host: settings.host,
    port: settings.port,
    database,
    user: settings.username,
    application_name: 'mayfly',
    connectionTimeoutMillis: host.timeoutMs,
    keepAlive: true,
    ssl: tls === 'disable' ? false : { rejectUnauthorized: tls === 'verify-full', ...ca },
    // The password leaves only by SCRAM, or over TLS that is verified: see `passwordFor`.
    stream: () => checkedSocket(host, { local: settings.local, givesLogin: false }),
  }
}

async function withClient<T>(
  client: PoolClient,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const cut = () => client.connection.stream.destroy()
  signal.addEventListener('abort', cut, { once: true })
  // Until the work is done a transaction may be open. Closing the connection rolls that back.
  let isClean = false
  try {
    const result = await work({
      query: (text) => queryOne(client, text),
      run: (list) => runAll(client, list),
    })
    signal.throwIfAborted()
    isClean = true
    return result
  } finally {
    signal.removeEventListener('abort', cut)
    client.release(!isClean)
  }
}

/** The extended protocol takes one statement only: nothing can be smuggled in behind a semicolon. */
async function queryOne(client: PoolClient, text: string): Promise<void> {
  let isRefused = false
  // `privilege_not_granted`: a GRANT that granted nothing is only a warning to PostgreSQL.
  const onNotice = ({ code }: { code?: string | undefined }) => {
    isRefused ||= code === '01007'
  }
  client.on('notice', onNotice)
  const query = { text, values: [], queryMode: 'extended' }
  const failure = await client.query(query).then(
    () => undefined,
    (error: unknown) => error,
  )
  client.off('notice', onNotice)
  // Also of a reply that was cut short: of many tables, there is a warning each.
  if (isRefused) {
    throw denied('The role that Mayfly uses cannot grant that privilege on to others.')
  }
  if (failure !== undefined) throw failure
}

async function runAll(client: PoolClient, statements: readonly string[]): Promise<readonly Row[]> {
  const results: QueryResult<Row> | QueryResult<Row>[] = await client.query<Row>(statements.join(';\n'))
  return [results].flat().findLast(({ fields }) => fields.length > 0)?.rows ?? []
}
