import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Client, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { newEnrollee } from '../support/enrollee.ts'

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  await app.newBackend({ name: 'stock' })
  agent = await app.newAgent({ scopes: ['orders', 'stock:read', 'admin:agents:*'] })
})
afterAll(() => app.close())

describe('a JWT with a narrower scope', () => {
  test('is limited to that scope in issuing, administration and status', async () => {
    const token = await app.accessToken(agent, 'orders:read')
    expect(decodeJwt(token)).toMatchObject({
      agent_id: agent.id,
      scopes: ['orders:read'],
      scope: 'orders:read',
    })
    const narrow = app.as(token)
    expect((await narrow.get('/v1/status')).body.scopes).toEqual(['orders:read'])
    const issued = await narrow.post('/api/v1/credentials', { backend: 'orders' })
    expect([issued.status, issued.body.scopes]).toEqual([201, ['read']])
    for (const body of [{ backend: 'orders', scopes: ['write'] }, { backend: 'stock' }]) {
      const reply = await narrow.post('/api/v1/credentials', body)
      expect([reply.status, reply.body.error.code]).toEqual([403, 'scope_not_allowed'])
    }
    expect((await narrow.get('/v1/admin/agents')).status).toBe(403)
  })

  test('is still the same agent, with its credentials and entries', async () => {
    const { id } = (await agent.client.post('/v1/credentials/stock')).body
    const narrow = app.as(await app.accessToken(agent, 'orders:read'))
    expect((await narrow.get(`/api/v1/credentials/${id}`)).status).toBe(200)
    expect((await narrow.delete(`/v1/active/${id}`)).status).toBe(204)
  })

  test('makes nothing that outlives it: no agent, no approval, no backend', async () => {
    const boss = await app.newAgent({ scopes: ['admin:*', 'orders', 'made'] })
    const asking = await app.newAgent()
    const { id: more } = (await asking.client.post('/v1/request', { scopes: ['orders'] })).body
    const enroll = { name: 'n-enrolled', scopes: ['orders'], public_key: newEnrollee().publicKey }
    const { enrollment_id: enrolled } = (await app.as(undefined).post('/v1/enroll', enroll)).body
    const made = { type: 'jwt', name: 'made', config: { audience: 'x' } }
    const WISHES = [
      ['post', '/v1/admin/agents', { name: 'n-1', scopes: ['orders:read'], expires_in: '1m' }],
      ['post', `/v1/admin/pending/${more}/approve`, { expires_in: '1m' }],
      ['post', `/v1/admin/pending/${enrolled}/approve`, { expires_in: '1m' }],
      ['post', '/v1/admin/backends', made],
      ['put', '/v1/admin/backends/made', { description: 'changed' }],
    ] as const
    const narrow = app.as(await app.accessToken(boss, 'admin:* orders:read'))
    for (const [method, path, body] of WISHES) {
      const refused = await narrow[method](path, body)
      expect([path, refused.status, refused.body.error.code]).toEqual([path, 403, 'insufficient_scope'])
    }
    const whole = app.as(await app.accessToken(boss))
    for (const [method, path, body] of WISHES)
      expect([path, (await whole[method](path, body)).status]).toEqual([path, 200])
  })

  test('is issued nothing that outlives it', async () => {
    const token = await app.accessToken(agent, 'orders:read')
    const ends = (decodeJwt(token).exp ?? 0) * 1_000
    const issue = async (client: Client, ttl: string) => {
      const { expires_at } = (await client.post('/v1/credentials/orders', { ttl })).body
      return Date.parse(expires_at)
    }
    expect(await issue(app.as(token), '2h')).toBe(ends)
    expect(await issue(app.as(token), '10m')).toBeLessThan(ends)
    expect(await issue(app.as(await app.accessToken(agent)), '2h')).toBeGreaterThan(ends)
  })

  test('grants no scope beyond its own', async () => {
    const whole = app.as(await app.accessToken(agent))
    expect((await whole.post('/v1/admin/agents', { name: 'n-2', scopes: ['stock:read'] })).status).toBe(200)
    const reply = await whole.post('/v1/admin/agents', { name: 'n-3', scopes: ['stock:write'] })
    expect([reply.status, reply.body.error.code]).toEqual([403, 'insufficient_scope'])
  })

  test('neither deletes its agent nor reads its private key, with any scope', async () => {
    for (const scope of ['openid', 'orders:read', 'orders stock:read', 'admin:agents:*']) {
      const narrow = app.as(await app.accessToken(agent, scope))
      const refused = [await narrow.get('/v1/signing-key'), await narrow.delete('/v1/self')]
      for (const { status, body, headers, text } of refused) {
        expect([scope, status, body?.error?.code]).toEqual([scope, 403, 'insufficient_scope'])
        // The answer does not reveal the other scopes of the agent.
        expect(headers.get('www-authenticate')).toBe('Bearer realm="mayfly", error="insufficient_scope"')
        expect(text).not.toMatch(/PRIVATE KEY|stock/)
      }
      const open = await narrow.get('/v1/signing-key?private_key=false')
      expect([open.status, open.body.key_id]).toEqual([200, agent.signing_key_id])
    }
    const denials = `/v1/admin/audit?agent=${agent.id}&action=auth.failed`
    await expect
      .poll(async () => (await app.admin('GET', denials)).body)
      .toContainEqual(
        expect.objectContaining({
          outcome: 'denied',
          details: { reason: 'narrowed_token' },
          auth_method: 'jwt',
        }),
      )
    expect((await agent.client.get('/v1/status')).status).toBe(200)
  })

  test('does not count as narrowed when it carries all scopes of its agent', async () => {
    const all = ['orders', 'stock:read', 'admin:agents:*']
    for (const scope of [undefined, all.join(' '), [...all].reverse().join(' ')]) {
      const one = await app.newAgent({ scopes: all })
      const whole = app.as(await app.accessToken(one, scope))
      expect((await whole.get('/v1/signing-key')).body.private_key).toContain('PRIVATE KEY')
      expect((await whole.delete('/v1/self')).status).toBe(204)
    }
    const none = await app.newAgent()
    expect((await app.as(await app.accessToken(none)).delete('/v1/self')).status).toBe(204)
  })

  test('counts as narrowed once its agent has received more scopes; the agent logs in again', async () => {
    const one = await app.newAgent({ scopes: ['orders'] })
    const old = app.as(await app.accessToken(one))
    const { id } = (await one.client.post('/v1/request', { scopes: ['stock'] })).body
    expect((await app.admin('POST', `/v1/admin/pending/${id}/approve`)).status).toBe(200)
    expect((await old.get('/v1/signing-key')).status).toBe(403)
    expect((await one.client.get('/v1/signing-key')).status).toBe(200)
    expect((await app.as(await app.accessToken(one)).get('/v1/signing-key')).status).toBe(200)
  })

  test('loses at once the scopes that the agent loses', async () => {
    const one = await app.newAgent({ scopes: ['orders', 'stock'] })
    const token = await app.accessToken(one)
    const client = app.as(token)
    expect((await client.post('/v1/credentials/stock')).status).toBe(200)
    await app.core.store.commit([
      {
        op: 'run',
        sql: 'UPDATE agents SET scopes = ?, version = version + 1 WHERE id = ?',
        params: ['["orders:read"]', one.id],
        rows: 1,
      },
      { op: 'invalidate' },
    ])
    expect((await client.get('/v1/status')).body.scopes).toEqual(['orders:read'])
    expect((await client.post('/v1/credentials/stock')).body.error.code).toBe('scope_not_allowed')
  })
})

describe('an opaque token', () => {
  test('stays valid for years', async () => {
    app.advance(20 * 365 * 86_400_000)
    expect((await agent.client.get('/v1/status')).status).toBe(200)
  })
})
