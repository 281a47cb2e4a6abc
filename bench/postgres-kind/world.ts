/** A PostgreSQL with a database to grant, another one for the bare statements, and Mayfly in front of it. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { startPostgresVersion } from '../../test/support/postgres-versions.ts'
import { type BareRunner, bareRunner } from '../bare-roles.ts'
import { burstOf, type Target } from '../bursts.ts'
import { type Burst, type Loader, startLoader } from '../loader.ts'
import { ask, freshDatabase } from '../postgres.ts'
import { onExit, plainEnvironment, temporaryDirectory } from '../processes.ts'
import { record } from '../request.ts'
import type { Bench } from '../scenario.ts'
import { BACKEND, type Checkout, mainOf, type OurServer, startOurs } from '../server.ts'

const execute = promisify(execFile)

export const BARE_GROUP = 'bare_group'

export interface KindWorld {
  /** For example PostgreSQL 18. */
  readonly version: string
  readonly bare: BareRunner
  /** As superuser, in the database of the bare statements. */
  sql(text: string, values?: unknown[]): Promise<pg.QueryResult>
  /** Credentials from now on get verifiers of so many iterations. */
  setIterations(iterations: number): Promise<void>
  newAgent(): Promise<KindAgent>
  /** Names of the roles of living credentials. */
  roles(): Promise<string[]>
  stop(): Promise<void>
}

export interface KindAgent {
  issue(clients: number, pace: { readonly warmMs: number; readonly burstMs: number }): Promise<Burst>
  /** Deletes it; its credentials are revoked afterwards. */
  delete(): Promise<void>
}

/** The server to measure: of a version from npm, or the one of the URL. */
export async function openPostgres(server: number | string): Promise<string> {
  if (typeof server === 'string') return server
  const started = await startPostgresVersion(server)
  onExit(started.stop)
  return started.url
}

export async function openKindWorld(
  bench: Bench,
  checkout: Checkout,
  superuser: string,
  tables: number,
): Promise<KindWorld> {
  const database = await freshDatabase(bench.say, superuser)
  await ask(database, (client) =>
    client.query(
      `DO $$ BEGIN FOR n IN 1..${tables} LOOP EXECUTE format('CREATE TABLE t_%s (id int)', n); END LOOP; END $$`,
    ),
  )
  const login = await createLogin(bench, checkout, database)
  const bareUrl = await freshDatabase(bench.say, superuser)
  const root = new pg.Client(bareUrl)
  // It ends with its database.
  root.on('error', () => undefined)
  await root.connect()
  onExit(() => root.end())
  const sql: KindWorld['sql'] = (text, values) => root.query(text, values)
  await sql('CREATE SEQUENCE bare_next')
  await sql(
    `DO $$ BEGIN CREATE ROLE ${BARE_GROUP} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
  )
  const server = await startOurs({ ...bench, checkout, dataDir: temporaryDirectory(bench.directory) })
  const { hostname, port, pathname } = new URL(database)
  const config = {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    ...login,
    local: true,
  }
  await server.admin('POST', '/v1/admin/backends', { type: 'postgres', name: BACKEND, config })
  const loader = startLoader()
  const { rows } = await sql("SELECT current_setting('server_version_num')::int / 10000 AS major")
  return {
    version: `PostgreSQL ${rows[0]?.major}`,
    bare: bareRunner(bareUrl),
    sql,
    async setIterations(iterations) {
      await putBackend(server, { config: { ...config, ...iterationsOf(iterations) } })
    },
    newAgent: () => newAgent(server, loader),
    async roles() {
      const { rows } = await sql("SELECT rolname FROM pg_authid WHERE rolname ~ '^mf_[0-9a-z]{26}$'")
      return rows.map((row) => row.rolname)
    },
    stop: server.stop,
  }
}

/** The default is left out, so that another checkout which does not know the field can be measured. */
function iterationsOf(iterations: number): object {
  return iterations === 4_096 ? {} : { scram_iterations: iterations }
}

async function putBackend(server: OurServer, json: object): Promise<void> {
  const path = `/v1/admin/backends/${BACKEND}`
  const { status, body } = await record({ method: 'PUT', path, json }, server.port)
  if (status !== 200) throw new Error(`PUT ${path} answered ${status}: ${body}`)
}

let logins = 0

/** What an administrator would set up for Mayfly. */
async function createLogin(
  bench: Bench,
  checkout: Checkout,
  database: string,
): Promise<{ username: string; password: string }> {
  logins += 1
  const username = `mayfly_bench_${process.pid}_${logins}`
  const password = randomBytes(12).toString('hex')
  const { way } = bench.kind
  const create = `CREATE ROLE ${username} LOGIN PASSWORD '${password}' ${way === 'direct' ? 'CREATEROLE' : ''}`
  await ask(database, (client) => client.query(create))
  if (way === 'functions') {
    await installFunctions(checkout, username, database)
  } else {
    await ask(database, (client) =>
      client.query(
        `GRANT USAGE ON SCHEMA public TO ${username} WITH GRANT OPTION;
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${username} WITH GRANT OPTION;
         DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO ${username}', current_database()); END $$`,
      ),
    )
  }
  return { username, password }
}

/** As the superuser does: reads the script, and gives it to psql. */
async function installFunctions(checkout: Checkout, login: string, database: string): Promise<void> {
  const named = ['--database', new URL(database).pathname.slice(1), '--username', login]
  const command = [mainOf(checkout), 'backend', 'setup-sql', 'postgres', ...named]
  const { stdout } = await execute(process.execPath, command, { env: plainEnvironment() })
  const file = join(temporaryDirectory(undefined), 'setup.sql')
  writeFileSync(file, stdout)
  await execute('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', file, '-d', database])
}

let agents = 0

async function newAgent(server: OurServer, loader: Loader): Promise<KindAgent> {
  agents += 1
  const name = `roles-${agents}`
  const made = await server.admin<{ token: string }>('POST', '/v1/admin/agents', {
    name,
    scopes: [`${BACKEND}:*`],
  })
  const json = { backend: BACKEND, ttl: '12h' }
  const target: Target = {
    pid: server.pid,
    port: server.port,
    asks: [{ method: 'POST', path: '/api/v1/credentials', bearer: made.token, json }],
    status: 201,
  }
  return {
    issue: (clients, pace) => burstOf(loader, target, clients, pace),
    async delete() {
      const { status, body } = await record(
        { method: 'DELETE', path: `/v1/admin/agents/${name}` },
        server.port,
      )
      if (status !== 204) throw new Error(`deleting ${name} answered ${status}: ${body}`)
    },
  }
}
