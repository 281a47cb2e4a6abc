import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as oauth from 'oauth4webapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OidcServer, startOidcServer } from '../support/oidc-server.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

interface Credential {
  readonly id: string
  readonly token: string
  readonly expires_at: string
}

let upstream: OidcServer
let mayfly: ServerProcess
let dataDir: string
let agent: string
beforeAll(async () => {
  upstream = await startOidcServer()
  dataDir = await mkdtemp(join(tmpdir(), 'mayfly-oauth2-'))
  await start()
  const base = {
    token_endpoint: upstream.tokenEndpoint,
    client_id: 'basic',
    client_secret: upstream.secret,
    scopes: ['orders:read', 'orders:write'],
    local: true,
  }
  const signedIn = { ...base, grant: 'refresh_token', refresh_token: await upstream.signIn() }
  const backends = [
    { type: 'oauth2', name: 'api', config: base },
    {
      type: 'oauth2-revocable',
      name: 'exact',
      config: { ...base, revocation_endpoint: upstream.revocationEndpoint },
    },
    { type: 'oauth2', name: 'signed-in', config: signedIn },
    { type: 'oauth2', name: 'short', config: { ...base, client_id: 'short' } },
  ]
  for (const backend of backends) {
    const made = await mayfly.call(undefined, 'POST', '/v1/admin/backends', backend)
    expect(made.body).toMatchObject({ name: backend.name })
  }
  const scopes = ['api:orders:read', 'exact:orders', 'signed-in:orders', 'short:orders:read']
  const made = await mayfly.call<{ token: string }>(undefined, 'POST', '/v1/admin/agents', {
    name: 'bot',
    scopes,
  })
  agent = made.body.token
})
afterAll(async () => {
  await mayfly.terminate()
  await upstream.close()
  await rm(dataDir, { recursive: true })
})

async function start(): Promise<void> {
  mayfly = await startServerProcess({ dataDir, flags: ['--upstream-timeout', '2s'] })
}

const issue = (backend: string, scopes?: readonly string[], ttl = '5m') =>
  mayfly.call<Credential>(agent, 'POST', '/api/v1/credentials', {
    backend,
    ...(scopes ? { scopes } : {}),
    ttl,
  })

/** As a resource server asks (RFC 7662), by another OAuth library. */
async function introspect(token: string): Promise<oauth.IntrospectionResponse> {
  const as = { issuer: upstream.url, introspection_endpoint: `${upstream.url}/token/introspection` }
  const client = { client_id: 'post' }
  const options = { [oauth.allowInsecureRequests]: true }
  const reply = await oauth.introspectionRequest(
    as,
    client,
    oauth.ClientSecretPost(upstream.secret),
    token,
    options,
  )
  return oauth.processIntrospectionResponse(as, client, reply)
}

test('a credential works at a resource server, for its scopes and no others', async () => {
  const { status, body } = await issue('api')
  expect(status).toBe(201)
  expect(await introspect(body.token)).toMatchObject({
    active: true,
    scope: 'orders:read',
    client_id: 'basic',
  })
  expect((await issue('api', ['orders:write'])).status).toBe(403)
  expect(body).toMatchObject({ upstream_expires_at: expect.any(String) })
  const info = await mayfly.call(agent, 'GET', '/api/v1/backends/api')
  expect(info.body).toMatchObject({ revocation: 'expiry_only' })
})

test('a revocable one ends within 5 s', async () => {
  const { body } = await issue('exact', ['orders:write'])
  expect(await introspect(body.token)).toMatchObject({ active: true, scope: 'orders:write' })
  const ended = await mayfly.call(agent, 'DELETE', `/api/v1/credentials/${body.id}`)
  expect(ended.status).toBe(200)
  await expect.poll(() => introspect(body.token), { timeout: 5_000 }).toMatchObject({ active: false })
})

test('one that cannot be revoked lasts until its expiry, which the reply says', async () => {
  const { body } = await issue('api')
  const ended = await mayfly.call(agent, 'DELETE', `/api/v1/credentials/${body.id}`)
  expect(ended.body).toMatchObject({ revoked: true, upstream: 'expires' })
  expect(await introspect(body.token)).toMatchObject({ active: true })
})

test('expired, a revocable one ends by the work of the sweeper, and any other at the server', async () => {
  const revocable = (await issue('exact', ['orders:write'], '2s')).body
  const short = (await issue('short')).body
  for (const { token, expires_at } of [revocable, short]) {
    await expect.poll(() => introspect(token)).toMatchObject({ active: false })
    // The server counts whole seconds.
    expect(Date.now()).toBeGreaterThan(Date.parse(expires_at) - 1_000)
  }
})

test('a refresh token that rotates outlives kill -9 between issues', async () => {
  for (let round = 0; round < 2; round += 1) {
    const all = await Promise.all([issue('signed-in'), issue('signed-in'), issue('signed-in')])
    for (const { body } of all) expect((await introspect(body.token)).active).toBe(true)
    await mayfly.kill()
    await start()
  }
})

test('nor does kill -9 lose it while a request has not reached the server', async () => {
  const reached = Promise.withResolvers<void>()
  const dropped = Promise.withResolvers<void>()
  upstream.before = async () => {
    reached.resolve()
    await dropped.promise
  }
  const asked = issue('signed-in').catch(() => undefined)
  await reached.promise
  await mayfly.kill()
  await asked
  upstream.before = async () => undefined
  await start()
  // The claim of the dead process ends after twice the upstream's time.
  await expect.poll(async () => (await issue('signed-in')).status, { timeout: 30_000 }).toBe(201)
})
