import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROBLEMS } from '../../src/domain/problems.ts'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let ada: NewAgent
let bob: NewAgent

beforeAll(async () => {
  app = await startApp()
  await app.newBackend({ name: 'orders' })
  ada = await app.newAgent({ name: 'ada', scopes: ['orders'] })
  bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
})
afterAll(() => app.close())

describe('the error body', () => {
  test('is code, message and request_id, the same id as in X-Request-Id, in both groups', async () => {
    const replies = [
      await ada.client.post('/api/v1/credentials', {}),
      await ada.client.get('/api/v1/credentials/cred_x'),
      await ada.client.post('/v1/credentials/nowhere'),
      await ada.client.get('/v1/admin/agents'),
      await ada.client.get('/nothing'),
      await app.as('bad').get('/v1/status'),
    ]
    for (const reply of replies) {
      expect(reply.body).toEqual({
        error: {
          code: expect.any(String),
          message: expect.any(String),
          request_id: reply.headers.get('x-request-id'),
        },
      })
      expect(reply.status).toBe(PROBLEMS[reply.body.error.code as keyof typeof PROBLEMS].status)
      expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8')
    }
  })

  test('echoes nothing of the request', async () => {
    const mark = 'zz-secret-zz'
    const replies = [
      await ada.client.post('/api/v1/credentials', { backend: mark }),
      await ada.client.post('/api/v1/credentials', { backend: 'orders', [mark]: 1 }),
      await ada.client.post('/api/v1/credentials', { backend: 'orders', ttl: mark, scopes: [mark] }),
      await ada.client.post('/api/v1/credentials', { backend: 'orders', params: { audience: mark } }),
      await ada.client.get(`/${mark}`),
      await ada.client.get(`/api/v1/credentials/${mark}`),
      await ada.client.get(`/v1/active?limit=${mark}`),
    ]
    for (const { status, text } of replies) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(text).not.toContain(mark)
    }
  })

  test('an unexpected error is internal_error with the request id and nothing else', async () => {
    const real = app.core.store.credentials.find
    app.core.store.credentials.find = () => Promise.reject(new TypeError('the secret inside is 42'))
    try {
      const reply = await ada.client.get(`/api/v1/credentials/cred_${'0'.repeat(26)}`)
      expect([reply.status, reply.body]).toEqual([
        500,
        {
          error: {
            code: 'internal_error',
            message: 'The server failed. Quote the request id when you report it.',
            request_id: reply.headers.get('x-request-id'),
          },
        },
      ])
    } finally {
      app.core.store.credentials.find = real
    }
  })

  test('a wrong method is 405 with Allow, an unknown path 404', async () => {
    const wrong = await ada.client.put('/api/v1/credentials', {})
    expect([wrong.status, wrong.body.error.code, wrong.headers.get('allow')]).toEqual([
      405,
      'method_not_allowed',
      'POST',
    ])
    const both = await ada.client.put('/v1/credentials/orders', {})
    expect(both.headers.get('allow')).toBe('GET, POST')
    for (const path of [
      '/api/v2/credentials',
      '/v1/Status',
      '/v1/status/',
      '//v1/status',
      '/v1/admin',
      '/api/v1',
    ]) {
      const reply = await ada.client.get(path)
      expect([path, reply.status, reply.body.error.code]).toEqual([path, 404, 'not_found'])
    }
  })

  test('answers 413, 414, 415 and 431 for requests that are too large or of another type', async () => {
    const big = await ada.client.post('/v1/credentials/orders', `{"metadata":{"a":"${'x'.repeat(66_000)}"}}`)
    expect([big.status, big.body.error.code]).toEqual([413, 'payload_too_large'])
    const long = await ada.client.get(`/v1/status?${'x'.repeat(8_300)}`)
    expect([long.status, long.body.error.code]).toEqual([414, 'uri_too_long'])
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=utf-16',
      'application/jsonx',
    ]) {
      const reply = await ada.client.post('/v1/credentials/orders', '{}', { 'content-type': type })
      expect([type, reply.status, reply.body.error.code]).toEqual([type, 415, 'unsupported_media_type'])
    }
    const headers = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, '1']))
    const many = await ada.client.get('/v1/status', headers)
    expect([many.status, many.body.error.code]).toEqual([431, 'headers_too_large'])
  })
})

describe('another agent’s', () => {
  /** A reply without what differs from request to request. */
  const plain = (reply: { status: number; headers: Headers; text: string }) => {
    const id = reply.headers.get('x-request-id') ?? ''
    const headers = [...reply.headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
    return { status: reply.status, headers, text: reply.text.replaceAll(id, 'ID') }
  }

  test('credential answers exactly as an unknown one, byte for byte', async () => {
    const theirs = (await ada.client.post('/v1/credentials/orders')).body.id
    const unknown = `cred_${'0'.repeat(26)}`
    for (const path of ['/api/v1/credentials/', '/v1/active/']) {
      for (const method of path.startsWith('/api') ? (['get', 'delete'] as const) : (['delete'] as const)) {
        const one = plain(await bob.client[method](path + theirs))
        const other = plain(await bob.client[method](path + unknown))
        expect(one).toEqual(other)
        expect(one.status).toBe(404)
        expect(JSON.parse(one.text).error.code).toBe('credential_not_found')
        for (const odd of ['cred_x', 'x', 'CRED_', '%00'.slice(0, 1) === '%' ? 'a%20b' : 'a'])
          expect(plain(await bob.client[method](path + odd)).status).toBe(404)
      }
    }
    expect((await ada.client.get(`/api/v1/credentials/${theirs}`)).body.status).toBe('active')
  })

  test('audit of a credential is as empty as that of an unknown one', async () => {
    const theirs = (await ada.client.post('/v1/credentials/orders')).body.id
    const one = await bob.client.get(`/api/v1/audit?credential=${theirs}`)
    const other = await bob.client.get(`/api/v1/audit?credential=cred_${'0'.repeat(26)}`)
    expect([one.status, one.text]).toEqual([other.status, other.text])
  })
})
