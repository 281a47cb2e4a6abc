import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

describe.each(DIALECTS)('a backend whose stored configuration cannot be opened, on %s', (dialect) => {
  let app: TestApp
  let agent: NewAgent
  let held: { id: string }
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'torn', max_ttl: '3h' })
    await app.newBackend({ name: 'whole' })
    agent = await app.newAgent({ scopes: ['torn', 'whole'] })
    held = (await agent.client.post('/v1/credentials/torn')).body
    // As a row that was restored from elsewhere, or damaged.
    const sql = "UPDATE backends SET config = 's1.1.' || substr(config, 9), version = 2 WHERE name = 'torn'"
    const damaged = { op: 'run', sql, params: [], rows: 1 } as const
    expect(await app.core.store.commit([damaged, { op: 'invalidate' }])).toEqual({ done: true })
  })
  afterAll(() => app.close())

  const admin = (method: string, body?: unknown) => app.admin(method, '/v1/admin/backends/torn', body)

  test('is shown as broken beside the others, which work', async () => {
    expect((await admin('GET')).body).toMatchObject({ name: 'torn', broken: true, max_ttl: '3h', config: {} })
    for (const path of ['/v1/admin/backends', '/api/v1/backends']) {
      const { status, body } = await app.admin('GET', path)
      const list: { id: string; broken?: boolean }[] = body.backends ?? body
      expect([status, list.map(({ id, broken }) => [id, broken])]).toEqual([
        200,
        [
          ['torn', true],
          ['whole', undefined],
        ],
      ])
    }
    expect((await agent.client.get('/api/v1/backends/torn')).body.broken).toBe(true)
    expect((await agent.client.post('/v1/credentials/whole')).status).toBe(200)
    expect((await app.as(undefined).get('/backends/whole/.well-known/jwks.json')).status).toBe(200)
    expect(app.logged()).toContain('cannot be opened')
  })

  test('issues nothing, and says why', async () => {
    for (const { status, headers, body } of [
      await agent.client.post('/v1/credentials/torn'),
      await agent.client.post('/api/v1/credentials', { backend: 'torn' }),
    ]) {
      expect([status, body.error.code]).toEqual([503, 'backend_unavailable'])
      expect(body.error.message).toContain('An administrator must enter it again')
      expect(headers.get('retry-after')).toBe('60')
    }
    expect((await app.as(undefined).get('/backends/torn/.well-known/jwks.json')).status).toBe(503)
  })

  test('still ends its credentials, and takes labels and limits', async () => {
    await app.sweep()
    expect((await agent.client.delete(`/api/v1/credentials/${held.id}`)).body.revoked).toBe(true)
    expect((await admin('PUT', { description: 'torn' })).body).toMatchObject({
      description: 'torn',
      broken: true,
    })
  })

  test('works again once its configuration is entered', async () => {
    const { status, body } = await admin('PUT', { config: { audience: 'again' } })
    expect([status, body.broken, body.config.audience]).toEqual([200, undefined, 'again'])
    expect((await agent.client.post('/v1/credentials/torn')).status).toBe(200)
  })

  test('can be deleted', async () => {
    const name = await app.newBackend({ name: 'gone' })
    await app.core.store.commit([
      {
        op: 'run',
        sql: "UPDATE backends SET config = 'x', version = 2 WHERE name = 'gone'",
        params: [],
        rows: 1,
      },
      { op: 'invalidate' },
    ])
    expect((await app.admin('DELETE', `/v1/admin/backends/${name}`)).status).toBe(204)
    await app.sweep()
    expect((await app.admin('GET', `/v1/admin/backends/${name}`)).status).toBe(404)
  })
})
