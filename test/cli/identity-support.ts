import { readdir, rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { type Routes, startFalseServer } from './false-server.ts'
import { newHome, runCli } from './support.ts'

/** A token of this form, whose signature nobody has made: only a server looks at that. */
export function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256', kid: 'k1', typ: 'JWT' })}.${part(claims)}.c2lnbmF0dXJl`
}

let made = 0
/** Of a job: each is another token. */
export function tokenFor(aud: unknown, more: object = {}): string {
  made += 1
  const exp = Math.floor(Date.now() / 1_000) + 300
  return jwt({ iss: 'https://issuer.example', sub: 'job', aud, exp, jti: `jti-${made}`, ...more })
}

export interface Asked {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface LookAlikeReply {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** A metadata service or a token endpoint of a CI system, on loopback. `undefined` cuts the connection, `'silence'` never answers. */
export async function startLookAlike(answer: (asked: Asked) => LookAlikeReply | 'silence' | undefined) {
  const got: Asked[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://x')
      const { method = '', headers } = request
      const asked = { method, path: url.pathname, query: url.searchParams, headers, body }
      got.push(asked)
      const reply = answer(asked)
      if (reply === 'silence') return
      if (reply === undefined) return void request.socket.destroy()
      response.writeHead(reply.status ?? 200, reply.headers).end(reply.body ?? '')
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    got,
    close: () => {
      server.closeAllConnections()
      return new Promise((done) => server.close(done))
    },
  }
}

const AGENT = {
  id: 'agent_06dzt7n1x5q9v3k6c8m2t4w0pb',
  name: 'ci-42',
  description: null,
  scopes: ['demo:read'],
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2030-01-01T00:00:00Z',
  last_used: null,
  active_credentials: [],
  pending_requests: [],
}

let granted = 0
export const granting = (more: object = {}) => {
  granted += 1
  return {
    access_token: `access-${granted}`,
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: 600,
    scope: 'demo:read',
    ...more,
  }
}

export const CREDENTIAL = {
  id: 'cred_00000000000000000000000000',
  token: 'the-secret',
  backend: 'demo',
  scopes: ['demo:read'],
  ttl: '10m',
  created_at: '2026-01-01T00:00:00.000Z',
  expires_at: '2036-01-01T00:10:00.000Z',
}

/** What a Mayfly server answers to a workload. `shown`: the tokens that it was shown. */
export async function startServer(routes: Routes = {}) {
  const server = await startFalseServer({
    'POST /oauth/token': () => [200, granting()],
    'GET /v1/status': () => [200, AGENT],
    'POST /api/v1/credentials': () => [201, CREDENTIAL],
    'DELETE /v1/login': () => [204, undefined],
    // As a server that has no runs.
    'POST /v1/runs': () => [404, { error: { code: 'not_found', message: 'There is no such route.' } }],
    'DELETE /v1/self': () => [204, undefined],
    [`DELETE /api/v1/credentials/${CREDENTIAL.id}`]: () => [200, { ...CREDENTIAL, status: 'revoked' }],
    ...routes,
  })
  return {
    ...server,
    shown: () =>
      server.got.flatMap(({ path, form }) =>
        path === '/oauth/token' ? [form.get('subject_token') ?? ''] : [],
      ),
  }
}

/** An endpoint of GitHub Actions, which signs what is asked for. */
export async function startActions() {
  const server = await startLookAlike(({ query }) => ({
    body: JSON.stringify({ count: 1, value: tokenFor(query.get('audience')) }),
  }))
  return {
    ...server,
    env: {
      GITHUB_ACTIONS: 'true',
      ACTIONS_ID_TOKEN_REQUEST_URL: `${server.url}/idtoken?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token-of-this-job',
    },
  }
}

/** A home for each test; what `closing` holds is closed after it. */
export function useJobs() {
  const closing: (() => Promise<unknown>)[] = []
  let home = ''
  const own: { env: Record<string, string> } = { env: {} }
  beforeEach(async () => {
    const made = await newHome()
    home = made.home
    own.env = made.env
  })
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    await rm(home, { recursive: true, force: true })
  })
  return {
    closing,
    home: () => home,
    /** Without a server and an identity. */
    bareEnv: () => own.env,
    /** A job of GitHub Actions, whose server is this one. */
    startJob: async (routes: Routes = {}) => {
      const [server, actions] = await Promise.all([startServer(routes), startActions()])
      closing.push(server.close, actions.close)
      return { server, actions, env: { ...own.env, ...actions.env, MAYFLY_SERVER: server.url } }
    },
    /** A server, and a look-alike of a source. */
    startSource: async (answer: Parameters<typeof startLookAlike>[0]) => {
      const [server, source] = await Promise.all([startServer(), startLookAlike(answer)])
      closing.push(server.close, source.close)
      const env = { ...own.env, MAYFLY_SERVER: server.url }
      const logIn = (more: Record<string, string>, argv: readonly string[] = []) =>
        runCli(['login', '--identity', ...argv], { env: { ...env, ...more } })
      return { server, source, env, logIn }
    },
    /** The files in which logins are kept. */
    kept: async () => {
      const names = await readdir(join(home, 'cache/mayfly/identities')).catch(() => [])
      return names.filter((name) => name.endsWith('.json'))
    },
  }
}

/** Whom a token is for. */
export const audienceOf = (token = '') =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).aud
