import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

const ADMIN = '/v1/admin/agents'
let app: TestApp
let port: string
beforeAll(async () => {
  app = await startApp()
  port = new URL(app.url).port
})
afterAll(() => app.close())

describe('the local host', () => {
  test('administers without credentials, under each of its names', async () => {
    for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      const reply = await app.raw({ path: ADMIN, headers: { host: `${host}:${port}` } })
      expect([host, reply.status]).toEqual([host, 200])
    }
  })

  test.each([
    'evil.example',
    'localhost',
    'localhost:1',
    '127.0.0.1.evil.example',
    '127.0.0.2:PORT',
    'localhost.:PORT',
    '[::ffff:127.0.0.1]:PORT',
  ])('called by the name %s it is misdirected', async (host) => {
    const reply = await app.raw({ path: ADMIN, headers: { host: host.replace('PORT', port) } })
    expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([421, 'misdirected_request'])
  })

  test.each([
    ['forwarded', 'for=1.2.3.4'],
    ['x-forwarded-for', '127.0.0.1'],
    ['x-forwarded-host', 'localhost'],
    ['x-forwarded-proto', 'https'],
    ['x-real-ip', '127.0.0.1'],
    ['via', '1.1 proxy'],
    ['cf-connecting-ip', '1.2.3.4'],
    ['cf-ray', 'x'],
    ['true-client-ip', '1.2.3.4'],
    ['x-client-ip', '1.2.3.4'],
    ['x-envoy-external-address', '1.2.3.4'],
    ['tailscale-user-login', 'me'],
    ['origin', 'http://localhost'],
    ['origin', 'null'],
    ['sec-fetch-site', 'same-origin'],
    ['sec-fetch-site', 'cross-site'],
    ['authorization', 'Bearer nonsense'],
    ['authorization', ''],
  ])('with %s: %s is not the local administrator', async (name, value) => {
    const reply = await app.raw({ path: ADMIN, headers: { host: `localhost:${port}`, [name]: value } })
    expect([reply.status, JSON.parse(reply.text).error.code]).toEqual([401, 'unauthorized'])
  })

  test('typed into a browser’s address bar it is let in', async () => {
    const reply = await app.raw({
      path: ADMIN,
      headers: { host: `localhost:${port}`, 'sec-fetch-site': 'none' },
    })
    expect(reply.status).toBe(200)
  })

  test('reads backends and the audit of group A, but has no credentials of its own', async () => {
    const nobody = app.as(undefined)
    for (const path of ['/api/v1/backends', '/api/v1/audit'])
      expect((await nobody.get(path)).status).toBe(200)
    for (const path of ['/v1/status', '/v1/active', '/v1/signing-key'])
      expect((await nobody.get(path)).status).toBe(401)
    expect((await nobody.post('/api/v1/credentials', { backend: 'x' })).status).toBe(401)
  })
})

describe('local_admin', () => {
  test.each([
    ['off', { localAdmin: 'off' }],
    ['auto with trusted_proxies', { trustedProxy: ['10.0.0.0/8'] }],
  ])('%s: only `admin.sock` and the scope', async (_what, argv) => {
    const other = await startApp({ argv })
    try {
      expect((await other.as(undefined).get(ADMIN)).status).toBe(401)
      expect((await other.local.get(ADMIN)).status).toBe(200)
    } finally {
      await other.close()
    }
  })
})
