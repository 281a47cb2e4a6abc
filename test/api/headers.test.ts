import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/http/routing/route-table.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  agent = await app.newAgent({ scopes: ['orders'] })
})
afterAll(() => app.close())

const PATHS = Object.keys(ROUTES).filter(
  (name) => name !== 'DELETE /v1/self' && name !== 'POST /v1/admin/keys/rotate',
)

describe('every reply', () => {
  test.each(PATHS)('%s has no-store, nosniff and a request id, good or bad', async (name) => {
    const [method, path] = name.split(' ') as [string, string]
    const url = path.replace(':backend', 'orders').replace(/:\w+/, 'nobody')
    for (const token of [undefined, agent.token, 'bad']) {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const response = await fetch(app.url + url, { method, headers })
      await response.arrayBuffer()
      const cached = path.includes('/.well-known/') && response.status === 200
      expect(response.headers.get('cache-control')).toBe(cached ? 'public, max-age=300' : 'no-store')
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      expect(response.headers.get('x-request-id')).toMatch(/^req_[0-9a-z]{26}$/)
      expect(response.headers.get('server')).toBeNull()
      expect(response.headers.get('x-powered-by')).toBeNull()
    }
  })

  test('a request id that was sent is not taken', async () => {
    const reply = await agent.client.get('/v1/status', { 'x-request-id': 'mine' })
    expect(reply.headers.get('x-request-id')).not.toBe('mine')
  })

  test('no page of elsewhere is let in: there is no Access-Control header', async () => {
    const reply = await agent.client.get('/v1/status', { origin: 'https://evil.example' })
    expect([...reply.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
    const preflight = await app.raw({
      method: 'OPTIONS',
      path: '/v1/status',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'GET' },
    })
    expect(preflight.status).toBe(405)
  })
})

test('/docs runs its own script alone, and nobody frames it', async () => {
  const page = await agent.client.get('/docs')
  const policy = new Map(
    page.headers
      .get('content-security-policy')
      ?.split('; ')
      .map((part): [string, string] => [part.split(' ', 1)[0] ?? '', part.slice(part.indexOf(' ') + 1)]),
  )
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(page.text) ?? []
  const hash = createHash('sha256').update(script).digest('base64')
  expect([policy.get('default-src'), policy.get('frame-ancestors')]).toEqual(["'none'", "'none'"])
  expect(policy.get('script-src')).toBe(`'sha256-${hash}'`)
  expect(page.text.match(/<script/g)).toHaveLength(1)
})

describe('success statuses', () => {
  test('group A POST 201, group B POST 200, DELETE of group B 204, everything else 200', async () => {
    const a = await agent.client.post('/api/v1/credentials', { backend: 'orders' })
    expect([a.status, a.headers.get('location')]).toEqual([201, `/api/v1/credentials/${a.body.id}`])
    const b = await agent.client.post('/v1/credentials/orders')
    expect([b.status, b.headers.get('location')]).toEqual([200, null])
    expect((await agent.client.delete(`/v1/active/${b.body.id}`)).status).toBe(204)
    expect((await agent.client.delete(`/api/v1/credentials/${a.body.id}`)).status).toBe(200)
    expect((await app.admin('POST', '/v1/admin/agents', { name: 'two-hundred' })).status).toBe(200)
    expect((await app.admin('DELETE', '/v1/admin/agents/two-hundred')).status).toBe(204)
  })
})
