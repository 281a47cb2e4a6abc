import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'

const TIMES = 20
/** Each rotation makes an RSA key, which takes from a tenth of a second to several. */
const ROTATIONS = 5
let server: TestPostgres
let database: TestDatabase
let a: TestApp
let b: TestApp

beforeAll(async () => {
  server = await startPostgres()
  database = await server.createDatabase()
  a = await startApp({ databaseUrl: database.url, jobs: true })
  b = await startApp({
    databaseUrl: database.url,
    masterKeyFile: join(a.directory, 'master.key'),
    jobs: true,
  })
})
afterAll(async () => {
  await b.close()
  await a.close()
  await database.drop()
  await server.stop()
})

const refusedBy = async (node: TestApp, token: string) =>
  (await node.as(token).get('/v1/status')).status === 401

describe('two nodes on one PostgreSQL: after one ends something, the next request to the other refuses it', () => {
  test('a revoked credential', async () => {
    const backend = await a.newBackend()
    const agent = await a.newAgent({ scopes: [backend] })
    const [onA, onB] = [a.as(agent.token), b.as(agent.token)]
    for (let time = 0; time < TIMES; time += 1) {
      const { id } = (await onB.post(`/v1/credentials/${backend}`)).body
      expect((await onA.delete(`/v1/active/${id}`)).status).toBe(204)
      expect((await onB.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
      expect((await onB.get('/v1/active')).body).toEqual([])
    }
  })

  test('a deleted agent', async () => {
    for (let time = 0; time < TIMES; time += 1) {
      const agent = await a.newAgent()
      expect(await refusedBy(b, agent.token)).toBe(false)
      expect((await a.admin('DELETE', `/v1/admin/agents/${agent.name}`)).status).toBe(204)
      expect(await refusedBy(b, agent.token)).toBe(true)
    }
  })

  test('a deleted agent, also after the database has lost its last changes', async () => {
    const agent = await a.newAgent()
    for (let time = 0; time < 5; time += 1) await a.newAgent()
    expect(await refusedBy(b, agent.token)).toBe(false)
    const root = new pg.Client({ connectionString: database.url })
    await root.connect()
    try {
      // As a replica that lags behind takes over.
      await root.query(
        "UPDATE meta SET value = (split_part(value, ' ', 1)::bigint - 4)::text WHERE key = 'generation'",
      )
    } finally {
      await root.end()
    }
    expect((await a.admin('DELETE', `/v1/admin/agents/${agent.name}`)).status).toBe(204)
    expect(await refusedBy(b, agent.token)).toBe(true)
    expect(await refusedBy(a, agent.token)).toBe(true)
  })

  test('a deleted backend', async () => {
    const agent = await a.newAgent({ scopes: ['*'] })
    const onB = b.as(agent.token)
    for (let time = 0; time < TIMES; time += 1) {
      const backend = await a.newBackend()
      const { id } = (await onB.post(`/v1/credentials/${backend}`)).body
      expect(id).toBeDefined()
      expect((await a.admin('DELETE', `/v1/admin/backends/${backend}?force=true`)).status).toBe(204)
      expect((await onB.post(`/v1/credentials/${backend}`)).body.error.code).toBe('backend_not_found')
      expect((await onB.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
    }
  })

  test('every access token, when the keys are rotated', async () => {
    const agent = await a.newAgent()
    for (let time = 0; time < ROTATIONS; time += 1) {
      const token = await b.accessToken(agent)
      expect(await refusedBy(b, token)).toBe(false)
      expect((await a.admin('POST', '/v1/admin/keys/rotate')).status).toBe(200)
      expect(await refusedBy(b, token)).toBe(true)
    }
  })

  test('a revoked access token', async () => {
    const agent = await a.newAgent()
    for (let time = 0; time < TIMES; time += 1) {
      const token = await b.accessToken(agent)
      expect(await refusedBy(b, token)).toBe(false)
      const form = new URLSearchParams({ ...agent.oidc, token })
      const reply = await fetch(`${a.url}/oauth/revoke`, { method: 'POST', body: form })
      await reply.arrayBuffer()
      expect(reply.status).toBe(200)
      expect(await refusedBy(b, token)).toBe(true)
    }
  })
})

describe('the sweepers of two nodes', () => {
  test('share the work: each credential expires once, with one entry', async () => {
    const name = `swept-${randomBytes(4).toString('hex')}`
    await a.newBackend({ name, default_ttl: '2s' })
    const agent = await a.newAgent({ scopes: [name] })
    const clients = [a.as(agent.token), b.as(agent.token)]
    const issued = await Promise.all(
      Array.from({ length: 200 }, (_, one) =>
        (clients[one % 2] as (typeof clients)[0]).post(`/v1/credentials/${name}`),
      ),
    )
    expect(new Set(issued.map(({ status }) => status))).toEqual(new Set([200]))
    const list = async () =>
      (await a.admin('GET', `/v1/admin/audit?backend=${name}&action=credential.expired&limit=1000`)).body as {
        credential_id: string
      }[]
    await eventually(async () => expect((await list()).length).toBeGreaterThanOrEqual(200))
    await Promise.all([a.sweep(), b.sweep()])
    const entries = await list()
    expect(entries).toHaveLength(200)
    expect(new Set(entries.map((entry) => entry.credential_id))).toEqual(
      new Set(issued.map(({ body }) => body.id)),
    )
  })

  test('of an upstream too: each role is dropped once, with one entry', async () => {
    const name = `roles-${randomBytes(4).toString('hex')}`
    const config = {
      host: server.host,
      port: server.port,
      database: database.name,
      username: server.username,
      ...(server.password === undefined ? {} : { password: server.password }),
      local: true,
    }
    await a.newBackend({ type: 'postgres', name, config, default_ttl: '1s' })
    const agent = await a.newAgent({ scopes: [name] })
    const clients = [a.as(agent.token), b.as(agent.token)]
    const issued = await Promise.all(
      Array.from({ length: 12 }, (_, one) =>
        (clients[one % 2] as (typeof clients)[0]).post(`/v1/credentials/${name}`),
      ),
    )
    const ids = issued.map(({ body }) => body.id)
    expect(new Set(ids).size).toBe(12)
    const of = async (action: string) =>
      (await a.admin('GET', `/v1/admin/audit?backend=${name}&action=${action}&limit=1000`)).body.map(
        (entry: { credential_id: string }) => entry.credential_id,
      )
    await eventually(async () => expect((await of('credential.settled')).length).toBeGreaterThanOrEqual(12))
    for (const action of ['credential.expired', 'credential.settled'])
      expect((await of(action)).sort()).toEqual([...ids].sort())
  })
})

describe('a policy', () => {
  test('has no more agents than max_agents, whichever node admits them', async () => {
    const yaml = [1, 2, 3, 4]
      .map((n) => `  - { name: p${n}, pattern: "p${n}-*", scopes: [a], auto_approve: true, max_agents: 2 }`)
      .join('\n')
    const wish = { databaseUrl: database.url, masterKeyFile: join(a.directory, 'master.key') }
    const nodes = await Promise.all(
      [1, 2, 3].map(() =>
        startApp({ ...wish, yaml: `policies:\n${yaml}\nlimits: {enrollments_per_minute: 100}\n` }),
      ),
    )
    const ask = async (node: TestApp, name: string) =>
      (await node.as(undefined).post('/v1/enroll', { name, public_key: newEnrollee().publicKey })).body.status
    for (const policy of ['p1', 'p2', 'p3', 'p4']) {
      const asked = nodes.flatMap((node, n) => [1, 2].map((time) => ask(node, `${policy}-${n}-${time}`)))
      expect((await Promise.all(asked)).filter((status) => status === 'approved')).toHaveLength(2)
      expect(await a.core.store.agents.countByPolicy(policy)).toBe(2)
    }
    await Promise.all(nodes.map((node) => node.close()))
  })
})
