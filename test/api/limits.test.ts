import { afterEach, describe, expect, test } from 'vitest'
import { type AppOptions, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

let app: TestApp
afterEach(() => app.close())
const start = async (wish: AppOptions) => {
  app = await startApp(wish)
}

const limited = (reply: { status: number; body: { error: { code: string } }; headers: Headers }) => {
  expect([reply.status, reply.body.error?.code]).toEqual([429, 'rate_limited'])
  expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
}

describe('limits', () => {
  test('has no issue rate by default', async () => {
    await start({})
    await app.newBackend({ name: 'orders' })
    const agent = await app.newAgent({ scopes: ['orders'] })
    for (let one = 0; one < 120; one += 1)
      expect((await agent.client.post('/v1/credentials/orders')).status).toBe(200)
  })

  test('limits each agent separately by issue_rate, which refills with time', async () => {
    await start({ env: { MAYFLY_LIMITS_ISSUE_RATE: '3/minute' } })
    await app.newBackend({ name: 'orders' })
    const [one, other] = [
      await app.newAgent({ scopes: ['orders'] }),
      await app.newAgent({ scopes: ['orders'] }),
    ]
    for (let time = 0; time < 3; time += 1)
      expect((await one.client.post('/v1/credentials/orders')).status).toBe(200)
    const refused = await one.client.post('/api/v1/credentials', { backend: 'orders' })
    limited(refused)
    expect((await other.client.post('/v1/credentials/orders')).status).toBe(200)
    app.advance(Number(refused.headers.get('retry-after')) * 1_000)
    expect((await one.client.post('/v1/credentials/orders')).status).toBe(200)
  })

  test('limits all agents of a backend together by its rate', async () => {
    await start({})
    await app.newBackend({ name: 'orders', rate: '2/hour' })
    await app.newBackend({ name: 'stock' })
    for (const expected of [200, 200, 429]) {
      const agent = await app.newAgent({ scopes: ['orders', 'stock'] })
      const reply = await agent.client.post('/v1/credentials/orders')
      expect(reply.status).toBe(expected)
      if (expected === 429) limited(reply)
      expect((await agent.client.post('/v1/credentials/stock')).status).toBe(200)
    }
  })

  test('counts living credentials for max_active_per_agent, and frees a place on revocation', async () => {
    await start({ env: { MAYFLY_LIMITS_MAX_ACTIVE_PER_AGENT: '3' } })
    await app.newBackend({ name: 'orders' })
    const agent = await app.newAgent({ scopes: ['orders'] })
    const ids: string[] = []
    for (let one = 0; one < 3; one += 1) ids.push((await agent.client.post('/v1/credentials/orders')).body.id)
    limited(await agent.client.post('/v1/credentials/orders'))
    await agent.client.delete(`/v1/active/${ids[0]}`)
    expect((await agent.client.post('/v1/credentials/orders')).status).toBe(200)
    limited(await agent.client.post('/v1/credentials/orders'))
  })

  test('records a refusal by max_active', async () => {
    await start({ env: { MAYFLY_LIMITS_MAX_ACTIVE_PER_AGENT: '1' } })
    await app.newBackend({ name: 'orders' })
    const agent = await app.newAgent({ scopes: ['orders'] })
    expect((await agent.client.post('/v1/credentials/orders')).status).toBe(200)
    limited(await agent.client.post('/v1/credentials/orders'))
    const { body } = await app.admin('GET', '/v1/admin/audit?action=credential.issue_failed')
    expect(body).toMatchObject([
      { outcome: 'denied', agent_id: agent.id, backend: 'orders', details: { code: 'rate_limited' } },
    ])
  })

  test('limits a backend by its max_active', async () => {
    await start({})
    await app.newBackend({ name: 'orders', max_active: 2 })
    const agent = await app.newAgent({ scopes: ['orders'] })
    const first = (await agent.client.post('/v1/credentials/orders')).body.id
    expect((await agent.client.post('/v1/credentials/orders')).status).toBe(200)
    limited(await agent.client.post('/v1/credentials/orders'))
    await agent.client.delete(`/v1/active/${first}`)
    expect((await agent.client.post('/v1/credentials/orders')).status).toBe(200)
  })

  describe.each(DIALECTS)('many simultaneous requests, on %s', (dialect) => {
    const askAtOnce = async (agents: readonly NewAgent[]) => {
      const asked = agents.map((agent) => agent.client.post('/v1/credentials/orders'))
      const replies = await Promise.all(asked)
      for (const reply of replies) if (reply.status !== 200) limited(reply)
      return replies.flatMap(({ status, body }) => (status === 200 ? [body.id as string] : []))
    }

    test('never exceed the limit of an agent, and get the places of revoked credentials', async () => {
      await start({ dialect, env: { MAYFLY_LIMITS_MAX_ACTIVE_PER_AGENT: '3' } })
      await app.newBackend({ name: 'orders' })
      const agent = await app.newAgent({ scopes: ['orders'] })
      const many = Array.from({ length: 24 }, () => agent)
      const ids = await askAtOnce(many)
      expect(ids).toHaveLength(3)
      await Promise.all(ids.slice(1).map((id) => agent.client.delete(`/v1/active/${id}`)))
      expect(await askAtOnce(many)).toHaveLength(2)
      expect((await agent.client.get('/v1/active')).body).toHaveLength(3)
    })

    test('never exceed the limit of a backend, from several agents', async () => {
      await start({ dialect })
      await app.newBackend({ name: 'orders', max_active: 1 })
      const agents = await Promise.all(Array.from({ length: 12 }, () => app.newAgent({ scopes: ['orders'] })))
      expect(await askAtOnce(agents)).toHaveLength(1)
    })
  })

  test('applies the max_ttl of the policy to its agents', async () => {
    const policy = '{ name: ci, pattern: "ci-*", scopes: ["orders"], auto_approve: true, max_ttl: 5m }'
    await start({ yaml: `policies:\n  - ${policy}\n` })
    await app.newBackend({ name: 'orders' })
    const agent = await app.newAgent({ scopes: ['orders'] })
    await app.core.store.commit([
      { op: 'run', sql: 'UPDATE agents SET policy = ? WHERE id = ?', params: ['ci', agent.id], rows: 1 },
      { op: 'invalidate' },
    ])
    expect((await agent.client.post('/v1/credentials/orders')).body.ttl).toBe('5m')
    const long = await agent.client.post('/v1/credentials/orders', { ttl: '6m' })
    expect([long.status, long.body.error.code]).toEqual([400, 'ttl_exceeded'])
  })

  test('has the documented defaults', async () => {
    await start({})
    expect(app.core.settings).toMatchObject({
      tokenFailuresPerMinute: 10,
      tokensPerMinute: 600,
      enrollmentsPerMinute: 10,
      maxPendingEnrollments: 1_000,
      maxActivePerAgent: 10_000,
      issueRate: undefined,
      accessTokenTtlMs: 3_600_000,
    })
  })
})
