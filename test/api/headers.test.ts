import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes.ts'
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
      const response = await fetch(app.url + url, { method, headers, redirect: 'manual' })
      // A stream of events has no end.
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) await response.body?.cancel()
      else await response.arrayBuffer()
      const cached = /\/\.well-known\/|scalar/.test(path) && response.status === 200
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

describe('the documentation', () => {
  const policyOf = (reply: Awaited<ReturnType<typeof agent.client.get>>) =>
    new Map(
      reply.headers
        .get('content-security-policy')
        ?.split('; ')
        .map((part): [string, string] => [part.split(' ', 1)[0] ?? '', part.slice(part.indexOf(' ') + 1)]),
    )

  test('is where the root leads', async () => {
    const reply = await fetch(app.url, { redirect: 'manual' })
    expect([reply.status, reply.headers.get('location')]).toEqual([302, '/docs'])
  })

  test('runs only scripts with the nonce of this reply, loads nothing from elsewhere, and nobody frames it', async () => {
    const page = await agent.client.get('/docs')
    const policy = policyOf(page)
    const [, nonce = ''] = /^'nonce-([A-Za-z0-9+/]{22}==)'$/.exec(policy.get('script-src') ?? '') ?? []
    expect(nonce).not.toBe('')
    expect(policy.get('style-src')).toMatch(/^'nonce-[^']+'(?: 'sha256-[^']+'){3}$/)
    expect([policy.get('default-src'), policy.get('frame-ancestors')]).toEqual(["'none'", "'none'"])
    expect(policy.get('connect-src')).toBe("'self'")
    expect([...policy.values()].join(' ')).not.toMatch(/https?:|\*|unsafe-eval/)
    const scripts = page.text.match(/<script[^>]*>/g) ?? []
    expect(scripts).toHaveLength(2)
    for (const script of scripts) expect(script).toContain(`nonce="${nonce}"`)
    expect(page.text.match(/(?:src|href)="[^"]*"/g)).toEqual(['href="data:,"', 'src="/docs/scalar.js"'])
    expect(page.text).not.toContain('NONCE-OF-THIS-REPLY')
    expect(policyOf(await agent.client.get('/docs')).get('script-src')).not.toBe(`'nonce-${nonce}'`)
  })

  test('serves its script from here, compressed for those who take it', async () => {
    const ask = (encoding: string) =>
      fetch(`${app.url}/docs/scalar.js`, { headers: { 'accept-encoding': encoding } })
    const [plain, zipped] = await Promise.all([ask('identity'), ask('gzip')])
    expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect([plain.headers.get('content-encoding'), zipped.headers.get('content-encoding')]).toEqual([
      null,
      'gzip',
    ])
    const text = await plain.text()
    expect(text.length).toBeGreaterThan(1_000_000)
    expect(await zipped.text()).toBe(text)
  })
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
