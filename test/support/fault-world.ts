import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { placeArtefact } from '../../src/app/plugins/artefacts.ts'
import type { CredentialRow } from '../../src/store/schema/rows.ts'
import { bundlePlugin } from './plugin-artefact.ts'
import { startOwnPostgres } from './postgres.ts'
import { poll, type ServerGiven, type ServerProcess, startServerProcess } from './server-process.ts'

export type Row = Record<string, unknown>
type Postgres = Awaited<ReturnType<typeof startOwnPostgres>>

export interface Issued {
  readonly id: string
  readonly token: string
  readonly backend: string
  readonly scopes: readonly string[]
  readonly expires_at: string
  readonly created_at: string
  readonly fields?: {
    readonly username: string
    readonly password: string
    readonly host: string
    readonly port: number
    readonly database: string
  }
}

/** A PostgreSQL of our own as the upstream, so that every `mf_` role in it is of the server under test. */
export interface Upstream {
  readonly server: Postgres
  readonly database: string
  sql(text: string, values?: unknown[], database?: string): Promise<Row[]>
  /** Names of all roles that credentials have left there. */
  roles(): Promise<string[]>
  /** Of the backend `db`; `port` where a proxy stands before it. */
  config(port?: number): Row
  close(): Promise<void>
}

export async function startUpstream(): Promise<Upstream> {
  const server = await startOwnPostgres()
  const database = await server.createDatabase()
  async function sql(text: string, values: unknown[] = [], name = database.name): Promise<Row[]> {
    const client = new pg.Client({
      host: server.host,
      port: server.port,
      user: server.username,
      password: server.password,
      database: name,
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query(text, values)).rows
    } finally {
      await client.end()
    }
  }
  await sql('CREATE TABLE things (id int)')
  // It is never killed itself, so it need not wait for its disk.
  await sql(`ALTER DATABASE ${database.name} SET synchronous_commit = off`)
  return {
    server,
    database: database.name,
    sql,
    roles: async () =>
      (await sql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%' ORDER BY 1")).map((row) =>
        String(row['rolname']),
      ),
    config: (port = server.port) => ({
      host: server.host,
      port,
      connect_port: server.port,
      database: database.name,
      username: server.username,
      password: server.password,
      local: true,
    }),
    close: () => server.stop(),
  }
}

/**
 * What a client sends to create the role of a credential, for a tripwire. `CREATE ROLE` alone is also in what prepares the groups
 * after each start, and in what revokes, which the sweeper may do at any time.
 */
export const CREATES_ROLE = 'CREATE ROLE %I LOGIN'

/** The role that a credential has upstream. */
export function roleOf(id: string): string {
  return `mf_${id.slice('cred_'.length)}`
}

/** Throws when it cannot log in as an agent would. */
export async function logIn(issued: Issued): Promise<void> {
  const { fields } = issued
  if (fields === undefined) throw new Error('no fields')
  const { username: user, password, host, port, database } = fields
  const client = new pg.Client({ user, password, host, port, database, connectionTimeoutMillis: 20_000 })
  client.on('error', () => undefined)
  await client.connect()
  await client.query('SELECT 1')
  await client.end()
}

export interface World {
  /** The server that runs now. */
  server(): ServerProcess
  start(more?: Partial<ServerGiven>): Promise<ServerProcess>
  readonly dataDir: string
  /** Rows of the store itself, also beside a running server. */
  rows<R = Row>(sql: string): Promise<R[]>
  close(): Promise<void>
}

/** As the store reads them: int8 (type 20) as numbers. */
const NUMBERS = new pg.TypeOverrides()
NUMBERS.setTypeParser(20, Number)

/** The store of one server that is killed and started again. */
export async function openWorld(
  given: Omit<ServerGiven, 'dataDir'> & { dataDir?: string } = {},
  /** Where to read PostgreSQL, if not through `databaseUrl`. */
  readUrl = given.databaseUrl,
): Promise<World> {
  const dataDir = given.dataDir ?? (await mkdtemp(join(tmpdir(), 'mayfly-world-')))
  const flags = ['--upstream-timeout', '2s', ...(given.flags ?? [])]
  let running: ServerProcess | undefined
  return {
    dataDir,
    server: () => {
      if (running === undefined) throw new Error('not started')
      return running
    },
    start: async (more = {}) => {
      running = await startServerProcess({ ...given, ...more, dataDir, flags })
      return running
    },
    rows: async <R>(sql: string) => {
      if (readUrl === undefined) {
        // Beside a running server, another writer would disturb what is tested; after it, SQLite may have to recover.
        const readOnly = running !== undefined && !running.hasEnded()
        const file = new DatabaseSync(join(dataDir, 'mayfly.db'), { readOnly })
        const rows = file.prepare(sql).all()
        file.close()
        return rows as R[]
      }
      const client = new pg.Client({ connectionString: readUrl, types: NUMBERS })
      client.on('error', () => undefined)
      await client.connect()
      try {
        return (await client.query(sql)).rows as R[]
      } finally {
        await client.end()
      }
    },
    close: async () => {
      await running?.kill()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** 2xx, or throws with what was answered. */
export async function must<T = Row>(
  server: ServerProcess,
  token: string | undefined,
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
): Promise<T> {
  const reply = await server.call<T>(token, method, path, body, headers)
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

/** Adds the kind `postgres` as a plugin, `postgres-plugin`. */
export async function addPostgresPlugin({ dataDir, server }: World): Promise<void> {
  const bytes = Buffer.from(await bundlePlugin('postgres-plugin.ts'))
  const sha256 = await placeArtefact(join(dataDir, 'plugins'), bytes)
  const artefact = {
    sha256,
    runtime: 'node',
    protocol: 'mayfly.plugin.v1',
    origin: 'file:postgres-plugin.js',
  }
  await must(server(), undefined, 'POST', '/v1/admin/plugins', artefact)
}

/** Backends `db` (of this kind) and `tok` (kind jwt). */
export async function addBackends(server: ServerProcess, config: Row, type = 'postgres'): Promise<void> {
  await must(server, undefined, 'POST', '/v1/admin/backends?check=false', { type, name: 'db', config })
  await must(server, undefined, 'POST', '/v1/admin/backends', {
    type: 'jwt',
    name: 'tok',
    config: { audience: 'demo' },
  })
}

export async function addAgent(server: ServerProcess, name: string): Promise<{ id: string; token: string }> {
  return must(server, undefined, 'POST', '/v1/admin/agents', { name, scopes: ['db', 'tok'] })
}

export function issue(server: ServerProcess, token: string, body: Row = {}): Promise<Issued> {
  return must(server, token, 'POST', '/api/v1/credentials', { backend: 'db', ttl: '1h', ...body })
}

/** Resolves when no credential waits for an upstream any more. On PostgreSQL, claims of a dead process last a while. */
export async function untilSettled(world: World): Promise<void> {
  let seen = ''
  const log = () => world.server().logged().split('\n').slice(-20).join('\n')
  await poll(
    () => `settled: ${seen}\n${log()}`,
    async () => {
      const waiting = await world.rows(
        "SELECT id, state FROM credentials WHERE state IN ('pending', 'revoking')",
      )
      seen = JSON.stringify(waiting)
      return waiting.length === 0
    },
    { everyMs: 100, withinMs: 180_000 },
  )
}

export const CREDENTIALS = 'SELECT * FROM credentials ORDER BY id'
export type StoredCredential = CredentialRow
