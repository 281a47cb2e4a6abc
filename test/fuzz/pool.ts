import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '../../src/app/app.ts'
import { createLogger } from '../../src/log/log.ts'
import { askAdminSocket } from '../support/admin-socket.ts'
import { loadGiven } from '../support/config.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { entry, JWT_BEARER, template, workload } from '../support/keyless.ts'

const ISSUER = 'https://mayfly.test'
const KEPT = 64
/** Requests may give an agent or its secrets an end; `refresh` replaces an agent that ends within this time. */
const LASTS_MS = 60_000
/** The callers and their scopes. */
const AGENTS: Record<string, string[]> = {
  wide: ['*', 'admin:*'],
  narrow: ['tok:read'],
  scopeless: [],
  partAdmin: ['admin:agents:read', 'tok:*', 'dead:*'],
}
const CREATE_BACKENDS: Record<string, object> = {
  tok: { type: 'jwt', config: { audience: 'demo' } },
  tok2: { type: 'jwt', config: { audience: ['a', 'b'] }, allowed_scopes: ['read:*'], max_ttl: '2h' },
  keys: { type: 'ssh', config: { principals: ['deploy'] } },
  images: { type: 'registry', config: { address: 'https://registry.test' } },
  // Nothing listens on port 1.
  dead: {
    type: 'postgres',
    config: { host: '127.0.0.1', port: 1, local: true, database: 'd', username: 'u', password: 'p' },
  },
}

interface Known {
  id: string
  token: string
  clientId: string
  clientSecret: string
  jwt: string
  narrowed: string
}

/** The service on a real port, with resources of every kind. */
export async function openPool() {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-fuzz-'))
  const huge = { enrollments_per_minute: 1_000_000, max_pending_enrollments: 1_000_000 }
  const limits = Object.entries({ ...huge, token_failures_per_minute: 1_000_000 })
  const { config } = await loadGiven({
    argv: { listen: '127.0.0.1:0', issuer: ISSUER, dataDir: directory, signingIdentity: 'any' },
    yaml: `limits:\n${limits.map(([key, value]) => `  ${key}: ${value}\n`).join('')}`,
  })
  const lines: string[] = []
  const log = createLogger({
    level: 'debug',
    format: 'json',
    destination: { write: (line) => lines.push(line) },
  })
  const app = await buildApp(config, log)
  const port = Number(new URL(await app.http.listen()).port)
  const known = new Map<string, Known>()
  const rings: Record<string, string[]> = { issuer: [ISSUER], kind: ['jwt', 'postgres', 'JWT', 'none'] }
  const enrollees: { id: string; prove: ReturnType<typeof newEnrollee>['prove'] }[] = []

  /** As the local administrator. */
  async function call(method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) {
    const content = payload && {
      body: JSON.stringify(payload),
      headers: { 'content-type': 'application/json' },
    }
    const reply = await askAdminSocket(directory, { method, path: url, ...content })
    if (reply.status >= 300) throw new Error(`${method} ${url}: ${reply.status} ${reply.text}`)
    return reply.text === '' ? undefined : JSON.parse(reply.text)
  }

  async function login(clientId: string, clientSecret: string, scope?: string): Promise<string> {
    const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret }
    const payload = new URLSearchParams({ ...form, ...(scope && { scope }) }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const reply = await app.http.server.inject({ method: 'POST', url: '/oauth/token', headers, payload })
    if (reply.statusCode !== 200) throw new Error(`login: ${reply.body}`)
    return reply.json().access_token
  }

  async function createAgent(name: string, scopes: string[]): Promise<Known> {
    const made = await call('POST', '/v1/admin/agents', { name, scopes })
    const { client_id: clientId, client_secret: clientSecret } = made.oidc
    const known = { id: made.id, token: made.token, clientId, clientSecret, jwt: '', narrowed: '' }
    keep('agentId', made.id)
    return known
  }

  function keep(kind: string, value: string): void {
    rings[kind] ??= []
    const ring = rings[kind]
    ring.push(value)
    if (ring.length > KEPT) ring.shift()
  }

  async function isGood(token: string): Promise<boolean> {
    const generation = await app.core.store.generation()
    return (await app.core.callers.find(token, generation)) !== undefined
  }

  async function hasAll(token: string, scopes: readonly string[]): Promise<boolean> {
    const caller = await app.core.callers.find(token, await app.core.store.generation())
    if (caller === undefined || caller.validUntil < app.core.store.now() + LASTS_MS) return false
    return scopes.every((scope) => caller.scopes.includes(scope))
  }

  /** Replaces the resources that the requests ended or changed. */
  async function refresh(): Promise<void> {
    const { byName } = await app.core.backends.at(await app.core.store.generation())
    for (const [name, settings] of Object.entries(CREATE_BACKENDS)) {
      if (byName.get(name)?.type !== (settings as { type: string }).type)
        await call('POST', '/v1/admin/backends?check=false', { name, ...settings })
    }
    for (const [name, scopes] of Object.entries(AGENTS)) {
      let agent = known.get(name)
      if (agent === undefined || !(await hasAll(agent.token, scopes))) {
        // Its token or its scopes were replaced, or it ends soon.
        if ((await app.core.store.agents.findByName(name)) !== undefined)
          await call('DELETE', `/v1/admin/agents/${name}`)
        agent = await createAgent(name, scopes)
        known.set(name, agent)
      }
      if (!(await isGood(agent.jwt))) {
        agent.jwt = await login(agent.clientId, agent.clientSecret)
        keep('jwt', agent.jwt)
        if (name === 'wide') agent.narrowed = await login(agent.clientId, agent.clientSecret, 'tok:read')
      }
    }
    rings['agent'] = [...known.keys(), ...known.keys(), 'WIDE', 'f-1', 'f-2', 'f-3', 'none']
    rings['backend'] = [...Object.keys(CREATE_BACKENDS), 'tok', 'TOK', 'none', 'jwt']
    rings['bearer'] = [...known.values()].map((one) => one.token)
    rings['clientId'] = [...known.values()].map((one) => one.clientId)
    rings['clientSecret'] = [...known.values()].map((one) => one.clientSecret)
    await logInWithoutSecret()
    await prove()
    await request()
    await startRun()
    await logInToRegistry()
  }

  /** A run of the agent that most requests come from. */
  async function startRun(): Promise<void> {
    const headers = { authorization: `Bearer ${known.get('wide')?.token}` }
    const started = await app.http.server.inject({ method: 'POST', url: '/v1/runs', headers })
    if (started.statusCode !== 200) throw new Error(`starting a run: ${started.statusCode} ${started.body}`)
    keep('run', started.json().id)
  }

  let keyless = ''
  /** A login that may have ended, and tokens of workloads that nobody has presented yet. */
  async function logInWithoutSecret(): Promise<void> {
    const fresh = () => workload(app, { run_id: randomUUID() })
    if (!(await isGood(keyless))) {
      const form = { grant_type: JWT_BEARER, assertion: fresh() }
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const payload = new URLSearchParams(form).toString()
      const reply = await app.http.server.inject({ method: 'POST', url: '/oauth/token', headers, payload })
      if (reply.statusCode !== 200) throw new Error(`keyless login: ${reply.body}`)
      keyless = reply.json().access_token
    }
    rings['workload'] = [fresh(), fresh(), fresh()]
  }

  let registryLogin = ''
  /** A credential of the registry, which asks its realm. */
  async function logInToRegistry(): Promise<void> {
    const headers = {
      authorization: `Bearer ${known.get('wide')?.token}`,
      'content-type': 'application/json',
    }
    const payload = JSON.stringify({ backend: 'images', scopes: ['team/app:pull'] })
    const issue = () =>
      app.http.server.inject({ method: 'POST', url: '/api/v1/credentials', headers, payload })
    let issued = await issue()
    if (issued.statusCode === 403) {
      // A request has restricted its scopes.
      await call('DELETE', '/v1/admin/backends/images?force=true')
      await call('POST', '/v1/admin/backends?check=false', { name: 'images', ...CREATE_BACKENDS['images'] })
      issued = await issue()
    }
    if (issued.statusCode !== 201) throw new Error(`registry: ${issued.body}`)
    const { username, password } = issued.json().fields
    registryLogin = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  }

  /** A request for scopes of each agent that the requests replaced. */
  async function request(): Promise<void> {
    rings['request'] = []
    for (const { token } of known.values()) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const mine = await app.http.server.inject({ url: '/v1/status', headers })
      if (mine.statusCode !== 200) throw new Error(`reading the status: ${mine.statusCode} ${mine.body}`)
      const [open] = mine.json().pending_requests
      const payload = JSON.stringify({ scopes: ['tok:more'] })
      const asked = { method: 'POST', url: '/v1/request', headers, payload } as const
      keep('request', open?.id ?? (await app.http.server.inject(asked)).json().id)
    }
  }

  /** Makes fresh proofs for the pending enrollments and an approved one. */
  async function prove(): Promise<void> {
    if (enrollees.length < 6) {
      const enrollee = newEnrollee(enrollees.length % 2 === 0 ? 'Ed25519' : 'P-256', ISSUER)
      const name = `enrollee-${enrollees.length}`
      const { id } = await call('POST', '/v1/enroll', { name, public_key: enrollee.publicKey })
      if (enrollees.length === 0) await call('POST', `/v1/admin/pending/${id}/approve`)
      enrollees.push({ id, prove: enrollee.prove })
      keep('enrollment', id)
    }
    const now = app.core.store.now()
    rings['enrollment'] = [...enrollees.map((one) => one.id), ...(rings['enrollment'] ?? []).slice(-10)]
    rings['proof'] = await Promise.all(enrollees.map(({ id, prove }) => prove(id, now)))
  }

  async function expiredJwt(): Promise<string> {
    const { core } = app
    const { signing } = await core.issuerKeys.at(await core.store.generation())
    const agent = known.get('wide')
    const iat = Math.floor(core.store.now() / 1000) - 7_200
    const shared = {
      iss: ISSUER,
      aud: ISSUER,
      sub: agent?.id,
      jti: 'old',
      client_id: agent?.clientId,
      iat,
      exp: iat + 3_600,
    }
    const claims = { ...shared, agent_id: agent?.id, agent_name: 'wide', scope: '*', scopes: ['*'] }
    return signing.sign({ typ: 'at+jwt' }, claims)
  }

  const job = entry('job', { agent: template('job-{run_id}'), scopes: ['tok:read'] })
  app.core.identities.setTrusted({ identities: [job], platforms: [] })
  await refresh()
  const old = await call('POST', '/v1/admin/agents', { name: 'old', scopes: ['*'], expires_in: '1ms' })
  const gone = await call('POST', '/v1/admin/agents', { name: 'gone', scopes: ['*'] })
  const bearer = { authorization: `Bearer ${gone.token}` }
  await app.http.server.inject({ method: 'DELETE', url: '/v1/self', headers: bearer })
  const ended: Record<string, string> = {
    expired: old.token,
    deleted: gone.token,
    expiredJwt: await expiredJwt(),
  }

  return {
    port,
    core: app.core,
    server: app.http.server,
    refresh,
    keep,
    logged: () => lines.join(''),
    /** The `Authorization` header of this caller; undefined for none. */
    bearer(kind: string): string | undefined {
      const wide = known.get('wide')
      if (kind === 'registry') return registryLogin
      if (kind === 'keyless') return `Bearer ${keyless}`
      if (kind === 'wideJwt') return `Bearer ${wide?.jwt}`
      if (kind === 'narrowedJwt') return `Bearer ${wide?.narrowed}`
      const token = ended[kind] ?? known.get(kind)?.token
      return token === undefined ? undefined : `Bearer ${token}`
    },
    /** `Authorization: Basic` of this agent as an OAuth client. */
    basic(name: string): string {
      const { clientId, clientSecret } = known.get(name) as Known
      return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    },
    resource(kind: string, index: number): string {
      const ring = rings[kind] ?? []
      // The newest resources are the most likely to exist still.
      return ring[ring.length - 1 - (index % Math.max(1, ring.length))] ?? `no-${kind}`
    },
    async close() {
      await app.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export type Pool = Awaited<ReturnType<typeof openPool>>
