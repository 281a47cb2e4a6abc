import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { startPostgres, type TestDatabase, type TestPostgres } from './postgres.ts'

/** A database of its own for backends of the kind `postgres`. */
export interface UpstreamDatabase {
  readonly server: TestPostgres
  readonly database: TestDatabase
  /** A superuser. */
  readonly root: pg.Client
  /** Of a backend that uses it, with this login or that of the superuser. */
  config(login?: { username: string; password: string }): Record<string, unknown>
  close(): Promise<void>
}

/** `given`: a server of its own, where nothing else has credentials. */
export async function openUpstreamDatabase(given?: TestPostgres): Promise<UpstreamDatabase> {
  const server = given ?? (await startPostgres())
  const database = await server.createDatabase()
  const root = new pg.Client({ connectionString: database.url })
  await root.connect()
  const { host, port, username, password } = server
  const own = { username, ...(password === undefined ? {} : { password }) }
  return {
    server,
    database,
    root,
    config: (login) => ({ host, port, database: database.name, ...(login ?? own), local: true }),
    close: async () => {
      await root.end()
      await database.drop()
      await server.stop()
    },
  }
}

/** The login of Mayfly at the upstream. */
export interface UpstreamLogin {
  readonly username: string
  readonly password: string
  /** The upstream refuses it from now on. */
  shutOut(): Promise<void>
  letIn(): Promise<void>
  drop(): Promise<void>
}

/** A new superuser, so that the upstream can refuse Mayfly alone. */
export async function createLogin({ root }: UpstreamDatabase): Promise<UpstreamLogin> {
  const username = `mayfly_${randomBytes(6).toString('hex')}`
  await root.query(`CREATE ROLE ${username} SUPERUSER LOGIN PASSWORD 'secret'`)
  return {
    username,
    password: 'secret',
    shutOut: async () => {
      await root.query(`ALTER ROLE ${username} NOLOGIN`)
      await root.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [
        username,
      ])
    },
    letIn: async () => {
      await root.query(`ALTER ROLE ${username} LOGIN`)
    },
    drop: async () => {
      await root.query(`DROP ROLE ${username}`)
    },
  }
}
