import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/app/version.ts'
import { StoreError } from '../../src/store/errors.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { someCredential } from '../support/store.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

describe('health', () => {
  test('/health answers anybody with status and version', async () => {
    const reply = await app.as(undefined).get('/health')
    expect([reply.status, reply.body]).toEqual([200, { status: 'ok', version: VERSION }])
    // What is sent for authentication is ignored.
    expect((await app.as('nonsense').get('/health')).status).toBe(200)
  })

  test('/readyz answers 200 while the store can be written', async () => {
    const reply = await app.as(undefined).get('/readyz')
    expect([reply.status, reply.body]).toEqual([200, { status: 'ready', version: VERSION }])
  })

  test('/readyz?verbose names what an upstream does not end, by age, for those who may read metrics', async () => {
    const own = await startApp()
    try {
      // Nothing listens there.
      const config = { host: '127.0.0.1', port: 1, database: 'app', username: 'mayfly', local: true }
      const made = await own.admin('POST', '/v1/admin/backends?check=false', {
        type: 'postgres',
        name: 'gone',
        config,
      })
      expect(made.status).toBe(200)
      const backend = await own.core.store.backends.findByName('gone')
      const now = own.core.store.now()
      const row = someCredential({
        backendUid: backend?.uid ?? '',
        backend: 'gone',
        state: 'revoking',
        endedAt: now - 25_000,
        createdAt: now - 60_000,
        dueAt: now + 900_000,
      })
      await own.core.store.commit([own.core.store.credentials.insert(row)])
      const path = '/readyz?verbose'
      // From elsewhere, as a proxy says.
      const elsewhere = { 'x-forwarded-for': '203.0.113.9' }
      expect((await own.as(undefined).get(path, elsewhere)).status).toBe(401)
      expect((await own.as(undefined).get('/readyz', elsewhere)).status).toBe(200)
      const agent = await own.newAgent({ scopes: ['admin:backends:read'] })
      expect((await agent.client.get(path)).body.error.code).toBe('insufficient_scope')
      const reader = await own.newAgent({ scopes: ['admin:metrics:read'] })
      for (const reply of [await reader.client.get(path), await own.admin('GET', path)]) {
        expect([reply.status, reply.body.status]).toEqual([200, 'ready'])
        const [{ age_seconds: age, ...one }] = reply.body.unended
        expect(one).toEqual({ backend: 'gone', count: 1 })
        expect(age).toBeGreaterThanOrEqual(25)
      }
      expect((await own.as(undefined).get('/readyz')).body.unended).toBeUndefined()
      expect((await own.admin('GET', '/readyz?verbose=maybe')).status).toBe(400)
      const shown = (await own.admin('GET', '/v1/admin/backends/gone')).body
      expect(shown.unended).toEqual({ count: 1, since: new Date(now - 25_000).toISOString() })
      const { text } = await own.admin('GET', '/metrics')
      const seconds = Number(/^mayfly_unended_seconds\{backend="gone"\} (.+)$/m.exec(text)?.[1])
      expect(seconds).toBeGreaterThanOrEqual(25)
    } finally {
      await own.close()
    }
  })

  test('/metrics counts, for the administrator only', async () => {
    const backend = await app.newBackend()
    const agent = await app.newAgent({ scopes: [backend] })
    await agent.client.post(`/v1/credentials/${backend}`)
    const reply = await app.admin('GET', '/metrics')
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(reply.text).toContain(`mayfly_issues_total{backend="${backend}",outcome="ok"} 1`)
    expect(reply.text).toContain('mayfly_ready 1')
    expect((await agent.client.get('/metrics')).status).toBe(403)
    // The denial is recorded after its reply, and is a change that the next test must not count.
    const denials = `/v1/admin/audit?agent=${agent.id}&action=auth.failed`
    await expect.poll(async () => (await app.admin('GET', denials)).body).toHaveLength(1)
  })

  test('names exactly its counters with _total, however often it is scraped', async () => {
    const changes = async () => {
      const { text } = await app.admin('GET', '/metrics')
      const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
      for (const [, name, type] of types)
        expect([name, type === 'counter']).toEqual([name, name?.endsWith('_total')])
      expect(types.length).toBeGreaterThan(10)
      return Number(/^mayfly_changes_total (\d+)$/m.exec(text)?.[1])
    }
    const before = await changes()
    // Another scrape of the same minute is only counted.
    expect(await changes()).toBe(before)
  })

  test('the number of series does not grow with what callers invent', async () => {
    const agent = await app.newAgent({ scopes: ['*'] })
    for (let one = 0; one < 20; one += 1) await agent.client.post(`/v1/credentials/invented-${one}`)
    expect((await app.admin('GET', '/metrics')).text).not.toContain('invented-')
  })

  test('the series of a deleted backend end with it, those of others go on', async () => {
    const own = await startApp()
    try {
      const [gone, kept] = [await own.newBackend(), await own.newBackend()]
      const agent = await own.newAgent({ scopes: [gone, kept] })
      for (const name of [gone, kept, 'invented']) {
        await agent.client.post(`/v1/credentials/${name}`)
        await agent.client.post(`/v1/credentials/${name}`, { ttl: '1000h' })
      }
      own.core.meter.revoked(gone, 'ok')
      own.core.meter.expired(gone, 1)
      await own.admin('DELETE', `/v1/admin/backends/${gone}?force=true`)
      // It stays open until a sweep finds that none of its credentials is left.
      await own.sweep()
      const { text } = await own.admin('GET', '/metrics')
      expect(text.split('\n').filter((line) => line.includes(`"${gone}"`))).toEqual([])
      expect(text).toContain(`mayfly_issues_total{backend="${kept}",outcome="ok"} 1`)
      expect(text).toContain(`mayfly_issues_total{backend="${kept}",outcome="denied"} 1`)
      expect(text).toContain(`mayfly_issue_seconds_count{backend="${kept}"} 2`)
      expect(text).toContain('mayfly_issues_total{backend="unknown",outcome="denied"} 2')
    } finally {
      await own.close()
    }
  })

  test('a store that cannot be reached answers 503 store_unavailable with Retry-After', async () => {
    const agent = await app.newAgent({ scopes: ['admin:agents:write'] })
    await agent.client.get('/v1/status')
    const real = app.core.store.commit
    app.core.store.commit = () => Promise.reject(new StoreError('the disk is full'))
    try {
      const reply = await agent.client.post('/v1/admin/agents', { name: 'never' })
      expect([reply.status, reply.body.error.code]).toEqual([503, 'store_unavailable'])
      expect(reply.headers.get('retry-after')).toBe('1')
      expect(reply.text).not.toContain('disk')
    } finally {
      app.core.store.commit = real
    }
  })
})
