import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type App, buildApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Core } from '../../src/core/context.ts'
import type { Resolver } from '../../src/egress/resolver.ts'
import type { Jobs } from '../../src/jobs/start.ts'
import { createSweeper } from '../../src/jobs/sweep.ts'
import { generateIssuerKey } from '../../src/keys/jwt-keys.ts'
import { createLogger } from '../../src/log/log.ts'
import { callAdminSocket, parsed, type Reply } from './admin-socket.ts'
import { freePort } from './free-port.ts'
import { startPostgres, type TestDatabase } from './postgres.ts'

export interface AppOptions {
  dialect?: 'sqlite' | 'postgres'
  /** Joins an existing database as another node. */
  databaseUrl?: string
  /** The master key of another node. */
  masterKeyFile?: string
  /** Settings given as flags. */
  argv?: Record<string, unknown>
  /** The contents of the configuration file. */
  yaml?: string
  env?: Record<string, string>
  /** Runs the sweeper and the other jobs. */
  jobs?: boolean
  /** Instead of the resolver of this machine. */
  resolver?: Resolver
  /** Makes the listening address the issuer. */
  ownIssuer?: boolean
}

export type { Reply }

type Send = (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>
export interface Client {
  get(path: string, headers?: Record<string, string>): Promise<Reply>
  post: Send
  put: Send
  patch: Send
  delete(path: string, headers?: Record<string, string>): Promise<Reply>
}

export interface NewAgent {
  id: string
  name: string
  token: string
  scopes: string[]
  created_at: string
  expires_at: string | null
  oidc: { client_id: string; client_secret: string }
  signing_key_id: string
  signing_email: string
  client: Client
}

export interface TestApp {
  readonly url: string
  readonly app: App
  readonly core: Core
  readonly directory: string
  /** PostgreSQL only. */
  readonly databaseUrl: string | undefined
  /** As the local administrator, through `admin.sock`. */
  readonly local: Client
  /** As `local`, with any method. */
  admin(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** Sends this bearer token, or none. */
  as(token: string | undefined): Client
  newAgent(settings?: { name?: string; scopes?: readonly string[]; expires_in?: string }): Promise<NewAgent>
  /** Creates a backend of kind `jwt` and returns its name. */
  newBackend(settings?: Record<string, unknown>, query?: string): Promise<string>
  /** Gets an access token for this agent; `scope` is the form parameter. */
  accessToken(agent: NewAgent, scope?: string): Promise<string>
  /** Sends exactly these headers, `Host` included, and these bytes. */
  raw(options: {
    method?: string
    path: string
    headers?: Record<string, string>
    body?: string | Buffer
  }): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>
  /** Moves the server's clock forward, in ms. */
  advance(ms: number): void
  /** Moves the server's clock past this time, which a reply gave. */
  advancePast(time: string): void
  /** Runs the sweeper once. */
  sweep(): Promise<void>
  logged(): string
  close(): Promise<void>
}

let count = 0

/** One for each issuer: an RSA key takes longer than most tests. */
const keys = new Map<string, ReturnType<typeof generateIssuerKey>>()

function sharedKeyOf(issuer: string, now: number): ReturnType<typeof generateIssuerKey> {
  const key = keys.get(issuer) ?? generateIssuerKey(issuer, now)
  keys.set(issuer, key)
  return key
}

/** Starts the whole service on a fresh store. */
export async function startApp(options: AppOptions = {}): Promise<TestApp> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-app-'))
  const database = options.dialect === 'postgres' ? await freshDatabase() : undefined
  const databaseUrl = options.databaseUrl ?? database?.url
  const port = options.ownIssuer === true ? await freePort() : 0
  const load = () =>
    loadConfig({
      argv: {
        listen: `127.0.0.1:${port}`,
        issuer: port === 0 ? 'https://mayfly.test' : `http://127.0.0.1:${port}`,
        dataDir: directory,
        ...(options.masterKeyFile === undefined ? {} : { masterKeyFile: options.masterKeyFile }),
        ...(options.yaml === undefined ? {} : { config: 'mayfly.yaml' }),
        ...options.argv,
      },
      env: { ...options.env, ...(databaseUrl === undefined ? {} : { MAYFLY_DATABASE_URL: databaseUrl }) },
      readFile: (path) =>
        path === 'mayfly.yaml' ? Promise.resolve(Buffer.from(options.yaml ?? '')) : readFile(path),
    })
  const loaded = await load()
  const { config } = loaded
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const log = createLogger({ level: 'debug', format: 'json', destination })
  const app = await buildApp(config, log, {
    ...(options.resolver === undefined ? {} : { resolver: options.resolver }),
    generateKey: sharedKeyOf,
    source: { loaded, load },
  })
  const { core } = app
  let offset = 0
  const realNow = core.store.now
  core.store.now = () => realNow() + offset
  const url = await app.http.listen().catch(async (error: unknown) => {
    await app.close()
    throw error
  })
  let jobs: Jobs | undefined = options.jobs === true ? app.startJobs() : undefined
  const as = (token: string | undefined) =>
    clientOf((method, path, body, headers) => call(url, method, path, token, body, headers))
  const admin: TestApp['admin'] = (method, path, body, headers) =>
    callAdminSocket(config.dataDir, method, path, body, headers)
  const sweeper = createSweeper(core)
  return {
    url,
    app,
    core,
    directory,
    databaseUrl,
    admin,
    local: clientOf(admin),
    as,
    async newAgent(agent = {}) {
      count += 1
      const reply = await admin('POST', '/v1/admin/agents', {
        name: `agent-${process.pid}-${count}`,
        ...agent,
      })
      if (reply.status !== 200) throw new Error(`creating the agent failed: ${reply.text}`)
      return { ...reply.body, client: as(reply.body.token) }
    },
    async newBackend(backend = {}, query = '') {
      count += 1
      const reply = await admin('POST', `/v1/admin/backends${query}`, {
        type: 'jwt',
        name: `be-${count}`,
        config: { audience: 'tests' },
        ...backend,
      })
      if (reply.status !== 200) throw new Error(`creating the backend failed: ${reply.text}`)
      return reply.body.id
    },
    async accessToken(agent, scope) {
      const form = new URLSearchParams({ grant_type: 'client_credentials', ...agent.oidc })
      if (scope !== undefined) form.set('scope', scope)
      const reply = await fetch(`${url}/oauth/token`, { method: 'POST', body: form })
      const body = (await reply.json()) as { access_token?: string }
      if (body.access_token === undefined)
        throw new Error(`getting the token failed: ${JSON.stringify(body)}`)
      return body.access_token
    },
    raw: (options) => rawRequest(url, options),
    advance: (ms) => {
      offset += ms
    },
    advancePast: (time) => {
      offset = Math.max(offset, Date.parse(time) + 1 - realNow())
    },
    async sweep() {
      await sweeper.sweep(new AbortController().signal)
      await sweeper.idle()
    },
    logged: () => lines.join(''),
    async close() {
      await app.http.drain()
      await jobs?.stop()
      jobs = undefined
      await app.close()
      await database?.drop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function freshDatabase(): Promise<TestDatabase> {
  const server = await startPostgres()
  const database = await server.createDatabase()
  return {
    ...database,
    drop: async () => {
      await database.drop()
      await server.stop()
    },
  }
}

function clientOf(send: TestApp['admin']): Client {
  return {
    get: (path, headers) => send('GET', path, undefined, headers),
    post: (path, body, headers) => send('POST', path, body, headers),
    put: (path, body, headers) => send('PUT', path, body, headers),
    patch: (path, body, headers) => send('PATCH', path, body, headers),
    delete: (path, headers) => send('DELETE', path, undefined, headers),
  }
}

async function call(
  url: string,
  method: string,
  path: string,
  token: string | undefined,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(url + path, {
    method,
    redirect: 'manual',
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parsed(text) }
}

function rawRequest(
  url: string,
  options: { method?: string; path: string; headers?: Record<string, string>; body?: string | Buffer },
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        hostname,
        port,
        method: options.method ?? 'GET',
        path: options.path,
        headers: options.headers ?? {},
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
    request.on('error', reject)
    request.end(options.body)
  })
}

/** Repeats `ask` until it succeeds; after `ms`, throws its last error. */
export async function eventually<T>(ask: () => Promise<T>, ms = 60_000): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
