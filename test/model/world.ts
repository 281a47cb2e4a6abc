import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { type App, buildApp } from '../../src/app/app.ts'
import { reapAgents } from '../../src/core/agents/reap-agents.ts'
import { expireEnrollments } from '../../src/core/enrollments/expire-enrollments.ts'
import { createSweeper } from '../../src/jobs/sweep.ts'
import { createLogger } from '../../src/log/log.ts'
import { createStore } from '../../src/store/open.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { askAdminSocket } from '../support/admin-socket.ts'
import { loadGiven } from '../support/config.ts'
import type { TestDatabase, TestPostgres } from '../support/postgres.ts'

export interface Reply {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: each test checks the replies that it reads
  readonly body: any
}

type Method = 'GET' | 'POST' | 'DELETE'

/** The whole service on a store that survives restarts, with a movable clock and a real upstream. */
export async function openWorld(dialect: 'sqlite' | 'postgres', server: TestPostgres) {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-model-'))
  const upstream = await server.createDatabase()
  const database = dialect === 'postgres' ? await server.createDatabase() : undefined
  const lines: string[] = []
  const errors: string[] = []
  const secrets = new Set<string>()
  const upstreamSql = new pg.Pool({ connectionString: upstream.url, max: 1 })
  upstreamSql.on('error', () => undefined)
  let offset = 0
  let now = 0
  let app: App

  async function start(): Promise<void> {
    const { config } = await loadGiven({
      argv: { listen: '127.0.0.1:0', issuer: 'https://mayfly.test', dataDir: directory },
    })
    const write = (line: string) => lines.push(line)
    const log = createLogger({ level: 'debug', format: 'json', destination: { write } })
    app = await buildApp(config, log, {
      open: async () => {
        const engine = database ? await openPostgres({ url: database.url }) : await openSqlite({ directory })
        // A reopened store may have advanced its clock to its last entry.
        offset = Math.max(0, now - engine.now())
        return createStore({ ...engine, now: () => engine.now() + offset })
      },
    })
    await app.http.listen()
  }

  async function send(
    method: Method,
    url: string,
    bearer: string,
    payload?: object | string,
    more = {},
  ): Promise<Reply> {
    const headers = { authorization: `Bearer ${bearer}`, ...more }
    const reply = await app.http.server.inject({
      method,
      url,
      headers,
      ...(payload === undefined ? {} : { payload }),
    })
    return checked(`${method} ${url}`, reply.statusCode, reply.body)
  }

  /** As the local administrator. */
  async function admin(method: Method, url: string, payload?: object): Promise<Reply> {
    const content: object =
      payload === undefined
        ? {}
        : { body: JSON.stringify(payload), headers: { 'content-type': 'application/json' } }
    const reply = await askAdminSocket(directory, { method, path: url, ...content })
    return checked(`${method} ${url}`, reply.status, reply.text)
  }

  function checked(what: string, status: number, body: string): Reply {
    if (status >= 400) errors.push(body)
    if (status >= 500) throw new Error(`${what}: ${status} ${body}\n${lines.slice(-5).join('')}`)
    return { status, body: body === '' ? undefined : JSON.parse(body) }
  }

  await start()
  return {
    secrets,
    send,
    get core() {
      return app.core
    },
    admin,
    async login(clientId: string, clientSecret: string, scope: string | undefined): Promise<Reply> {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret }
      const payload = new URLSearchParams({ ...form, ...(scope !== undefined && { scope }) }).toString()
      const type = { 'content-type': 'application/x-www-form-urlencoded' }
      const reply = await app.http.server.inject({
        method: 'POST',
        url: '/oauth/token',
        headers: type,
        payload,
      })
      if (reply.statusCode >= 400) errors.push(reply.body)
      return { status: reply.statusCode, body: reply.json() }
    },
    now: () => app.core.store.now(),
    advance(ms: number) {
      offset += ms
    },
    /** Runs every job that ends something once. */
    async sweep(): Promise<void> {
      const { signal } = new AbortController()
      await reapAgents(app.core, signal)
      await expireEnrollments(app.core, app.core.store.now())
      await app.core.store.commit(app.core.store.tokens.tidy(app.core.store.now()), { urgent: true })
      const sweeper = createSweeper(app.core)
      await sweeper.sweep(signal)
      await sweeper.idle()
    },
    async restart(): Promise<void> {
      now = app.core.store.now()
      await app.close()
      await start()
    },
    upstreamConfig: {
      host: server.host,
      port: server.port,
      database: upstream.name,
      username: server.username,
      ...(server.password === undefined ? {} : { password: server.password }),
      local: true,
    },
    async roles(): Promise<string[]> {
      const found = await upstreamSql.query(
        "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%' ORDER BY 1",
      )
      return found.rows.map((row) => String(row['rolname']))
    },
    audit: () => app.core.store.audit.query({}, 1_000_000),
    credentials: () => app.core.store.credentials.list(undefined, 1_000_000),
    /** Everything that a thief of the disk, the log or the error replies would see, by place. */
    async stolen(): Promise<Record<string, string>> {
      const files = database ? await dump(database) : readFiles(directory)
      return { ...files, log: lines.join(''), replies: errors.join('\n') }
    },
    async close(): Promise<void> {
      await app.close()
      await upstreamSql.end()
      await upstream.drop()
      await dropRoles(server)
      await database?.drop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export type World = Awaited<ReturnType<typeof openWorld>>

/** Removes roles that a failed sequence left behind, which the next one would find. */
async function dropRoles(server: TestPostgres): Promise<void> {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const left = await client.query("SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%'")
  for (const { rolname } of left.rows) await client.query(`DROP ROLE ${pg.escapeIdentifier(rolname)}`)
  await client.end()
}

async function dump(database: TestDatabase): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    const texts: Record<string, string> = {}
    const tables = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (const { tablename } of tables.rows)
      texts[tablename] = JSON.stringify((await client.query(`SELECT * FROM ${tablename}`)).rows)
    return texts
  } finally {
    await client.end()
  }
}

/** All files in the data directory except the keys themselves. */
function readFiles(directory: string): Record<string, string> {
  const names = readdirSync(directory).filter((name) => name !== 'master.key' && name !== 'admin.sock')
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(directory, name), 'latin1')]))
}
