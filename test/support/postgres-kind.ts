import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Backend, Issued } from '../../src/backends/kind.ts'
import type { Config } from '../../src/backends/postgres/config.ts'
import { postgres } from '../../src/backends/postgres/kind.ts'
import { newRequest } from '../contract/open-kind.ts'
import { createTestHost } from './host.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from './postgres.ts'

export interface Bench {
  readonly server: TestPostgres
  readonly database: TestDatabase
  /** Of every backend that `open` opens. */
  readonly uid: string
  /** As superuser, in `database` or the one named. */
  sql(text: string, values?: unknown[], database?: string): Promise<Record<string, unknown>[]>
  createDatabase(): Promise<TestDatabase>
  /** A role with a password that is dropped at the end. */
  createRole(options: string, name?: string): Promise<{ username: string; password: string }>
  /** A login that may only execute the functions, which are installed for this configuration. */
  setUp(overrides?: Partial<Config>): Promise<{ username: string; password: string }>
  /** As psql would. */
  runScript(script: string): Promise<void>
  settings(overrides?: Partial<Config>): Config
  open(overrides?: Partial<Config>): Promise<Backend>
  logged(): string
  close(): Promise<void>
}

export const signal = () => AbortSignal.timeout(60_000)

/** A real server, or the one given, with one database; everything made in it is taken away at the end. */
export async function openBench(given?: TestPostgres): Promise<Bench> {
  const server = given ?? (await startPostgres())
  const database = await server.createDatabase()
  const { host, logged } = createTestHost('db')
  const undo: (() => Promise<unknown>)[] = []
  /** After all databases but the first one. */
  const dropRoles: (() => Promise<unknown>)[] = []
  const login = { host: server.host, port: server.port, user: server.username, password: server.password }

  async function sql(text: string, values: unknown[] = [], name = database.name) {
    const client = new pg.Client({ ...login, database: name })
    client.on('error', () => undefined)
    await client.connect()
    try {
      const result = await client.query(text, values)
      const last = Array.isArray(result) ? result.at(-1) : result
      return (last?.rows ?? []) as Record<string, unknown>[]
    } finally {
      await client.end()
    }
  }

  function settings(overrides: Partial<Config> = {}): Config {
    return {
      host: server.host,
      port: server.port,
      database: database.name,
      username: server.username,
      ...(server.password === undefined ? {} : { password: server.password }),
      local: true,
      grant: 'read-only',
      schemas: ['public'],
      ...overrides,
    }
  }

  async function createRole(options: string, name = `t_${randomBytes(6).toString('hex')}`) {
    const password = `p'"\\ %s ${randomBytes(6).toString('hex')}`
    await sql(
      `CREATE ROLE ${pg.escapeIdentifier(name)} LOGIN PASSWORD ${pg.escapeLiteral(password)} ${options}`,
    )
    // From PostgreSQL 16 on it keeps functions there.
    if (options.includes('CREATEROLE'))
      await sql(`GRANT CREATE ON DATABASE ${database.name} TO ${pg.escapeIdentifier(name)}`)
    dropRoles.unshift(() =>
      sql(`DROP OWNED BY ${pg.escapeIdentifier(name)}; DROP ROLE ${pg.escapeIdentifier(name)}`),
    )
    return { username: name, password }
  }

  async function runScript(script: string) {
    for (const [name, statements] of byDatabase(script, database.name)) await sql(statements, [], name)
  }

  return {
    server,
    database,
    uid: host.uid,
    sql,
    settings,
    logged,
    async createDatabase() {
      const other = await server.createDatabase()
      undo.push(() => other.drop())
      return other
    },
    createRole,
    runScript,
    async setUp(overrides = {}) {
      const role = await createRole('')
      const given = settings({ ...overrides, ...role })
      await runScript(postgres.setup?.install(given) ?? '')
      undo.unshift(() => runScript(withoutCheck(postgres.setup?.uninstall(given) ?? '')))
      return role
    },
    async open(overrides) {
      const backend = (await postgres.open(settings(overrides), host)) as Backend
      undo.unshift(async () => {
        // It fails where a test has made the server unreachable, or has disposed of the backend.
        await backend.retire?.(signal()).catch(() => undefined)
        await backend[Symbol.asyncDispose]()
      })
      return backend
    },
    async close() {
      for (const step of [...undo, ...dropRoles]) await step()
      await database.drop()
      await server.stop()
    },
  }
}

/** The statements of a script for psql, with the database that each part connects to. */
function byDatabase(script: string, first: string): [string, string][] {
  const [head = '', ...parts] = script.replace(/^\\set .*$/gm, '').split(/^\\connect /m)
  return [
    [first, head],
    ...parts.map((part): [string, string] => {
      const end = part.indexOf('\n')
      return [part.slice(1, end - 1).replaceAll('""', '"'), part.slice(end)]
    }),
  ]
}

/** Other tests have credentials on the same server. */
const withoutCheck = (script: string) => script.replace(/^DO 'BEGIN IF EXISTS .*$/m, '')

/** A connection as an agent would open it; the caller ends it. */
export async function login(issued: Issued, database?: string, options?: string): Promise<pg.Client> {
  const fields = issued.fields ?? {}
  const client = new pg.Client({
    host: String(fields['host']),
    port: Number(fields['port']),
    user: String(fields['username']),
    password: String(fields['password']),
    database: database ?? String(fields['database']),
    ...(options === undefined ? {} : { options }),
  })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

/** Resolves when the server has ended the session. */
export function ended(client: pg.Client): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  client.once('end', resolve)
  return promise
}

export function request(scopes: readonly string[]) {
  return newRequest(scopes)
}
