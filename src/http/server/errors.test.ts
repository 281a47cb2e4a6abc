import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { useHttpServers } from '../../../test/support/http-server.ts'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem, type ProblemOptions } from '../../domain/problems.ts'
import { installFormBodies } from './bodies.ts'

const build = useHttpServers()

const throwing = (error: () => unknown) => {
  const { server, logged } = build()
  server.get('/x', () => {
    throw error()
  })
  return { server, logged, reply: () => server.inject('/x') }
}
const problem = (code: Problem['code'], options?: ProblemOptions) =>
  throwing(() => new Problem(code, options)).reply()

describe('errors', () => {
  it('show a problem and its request id', async () => {
    const reply = await problem('backend_not_found')
    expect(reply.statusCode).toBe(404)
    expect(reply.body).toBe(
      '{"error":{"code":"backend_not_found","message":"There is no such backend.","request_id":"req_1"}}',
    )
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  it.each<[Problem['code'], ProblemOptions, string, string | undefined]>([
    ['unauthorized', {}, 'www-authenticate', 'Bearer realm="mayfly"'],
    [
      'unauthorized',
      { invalidToken: true },
      'www-authenticate',
      'Bearer realm="mayfly", error="invalid_token"',
    ],
    [
      'insufficient_scope',
      { scope: 'admin:agents:read' },
      'www-authenticate',
      'Bearer realm="mayfly", error="insufficient_scope", scope="admin:agents:read"',
    ],
    [
      'insufficient_scope',
      { scope: 'a"\r\nb' },
      'www-authenticate',
      'Bearer realm="mayfly", error="insufficient_scope", scope="ab"',
    ],
    ['scope_not_allowed', {}, 'www-authenticate', undefined],
    ['rate_limited', { retryAfterSeconds: 7 }, 'retry-after', '7'],
    ['rate_limited', {}, 'retry-after', '1'],
    ['backend_unavailable', { retryAfterSeconds: 30 }, 'retry-after', '30'],
    ['conflict', {}, 'retry-after', undefined],
  ])('%s %j has %s', async (code, options, name, value) => {
    expect((await problem(code, options)).headers[name]).toBe(value)
  })

  it.each<[string, () => unknown]>([
    ['a TypeError', () => new TypeError('cks_secret')],
    [
      'an error that calls itself 404',
      () => Object.assign(new Error('cks_secret'), { statusCode: 404, code: 'ENOENT' }),
    ],
    [
      'an error that calls itself toString',
      () => Object.assign(new Error('cks_secret'), { code: 'toString' }),
    ],
    ['a string', () => 'cks_secret'],
    ['null', () => null],
  ])('in our own code answer 500 without details: %s', async (_name, error) => {
    const { reply, logged } = throwing(error)
    const { statusCode, body } = await reply()
    expect(statusCode).toBe(500)
    expect(body).not.toContain('cks_secret')
    expect(JSON.parse(body).error).toMatchObject({ code: 'internal_error', request_id: 'req_1' })
    expect(logged).toMatchObject([
      { level: 'error', fields: { request_id: 'req_1', method: 'GET', route: '/x' } },
    ])
  })

  it('log what the caller does not see', async () => {
    const { reply, logged } = throwing(() => new Problem('backend_error', { detail: 'upstream said no' }))
    expect((await reply()).body).not.toContain('upstream said no')
    expect(logged).toMatchObject([{ level: 'warn', fields: { detail: 'upstream said no' } }])
  })

  it('do not pass through the response schema of the route', async () => {
    const { server } = build()
    const response = { '4xx': Type.Object({}), default: Type.Object({}) }
    server.get('/x', { schema: { response } }, () => Promise.reject(new Problem('gone')))
    expect((await server.inject('/x')).json().error.code).toBe('gone')
  })

  it('name the methods that a path has', async () => {
    const { server } = build()
    server.get('/a/:id', () => 'x')
    server.delete('/a/:id', () => 'x')
    server.post('/b', () => 'x')
    const wrong = await server.inject({
      method: 'PUT',
      url: '/a/1?x=1',
      payload: 'text',
      headers: { 'content-type': 'text/plain' },
    })
    expect(wrong.statusCode).toBe(405)
    expect(wrong.headers['allow']).toBe('GET, HEAD, DELETE')
    expect(wrong.json().error.code).toBe('method_not_allowed')
    expect((await server.inject('/b')).headers['allow']).toBe('POST')
    expect((await server.inject({ method: 'POST', url: '/c', payload: 'x' })).json().error.code).toBe(
      'not_found',
    )
  })
})

describe('/oauth/', () => {
  function oauth(handler: (body: unknown) => unknown) {
    const { server } = build()
    server.register((scope, _options, done) => {
      installFormBodies(scope)
      scope.post('/oauth/token', (request) => handler(request.body))
      done()
    })
    server.post('/json', (request) => request.body)
    return (payload: string, headers: Record<string, string> = {}, url = '/oauth/token') =>
      server.inject({
        method: 'POST',
        url,
        payload,
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      })
  }
  const thrower = (error: unknown) =>
    oauth(() => {
      throw error
    })

  it('takes forms, and nothing else does', async () => {
    const send = oauth((body) => body)
    expect((await send('a=b&c=d+e')).json()).toEqual({ a: 'b', c: 'd e' })
    expect(
      (await send('a=1', { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' })).statusCode,
    ).toBe(200)
    expect((await send('{}', { 'content-type': 'application/json' })).statusCode).toBe(415)
    expect((await send('a=b', {}, '/json')).statusCode).toBe(415)
    expect((await send('{"a":1}', { 'content-type': 'application/json' }, '/json')).json()).toEqual({ a: 1 })
    const twice = await send('a=1&a=2')
    expect(twice.statusCode).toBe(400)
    expect(twice.json()).toEqual({
      error: 'invalid_request',
      error_description: 'The form has the same parameter twice.',
    })
  })

  it.each<[unknown, number, string]>([
    [new Problem('unauthorized'), 401, 'invalid_client'],
    [new Problem('scope_not_allowed'), 400, 'invalid_scope'],
    [new Problem('insufficient_scope'), 403, 'insufficient_scope'],
    [new Problem('rate_limited'), 429, 'temporarily_unavailable'],
    [new Problem('store_unavailable'), 503, 'temporarily_unavailable'],
    [new Problem('payload_too_large'), 413, 'invalid_request'],
    [new Problem('backend_error'), 502, 'server_error'],
    [new TypeError('cks_secret'), 500, 'server_error'],
    [new OAuthProblem('invalid_target', 'No such audience.'), 400, 'invalid_target'],
    [
      new OAuthProblem('unsupported_grant_type', 'Only "client_credentials" \\ é.'),
      400,
      'unsupported_grant_type',
    ],
  ])('answers %s in the words of RFC 6749', async (error, status, code) => {
    const reply = await thrower(error)('a=1')
    expect(reply.statusCode).toBe(status)
    expect(reply.json().error).toBe(code)
    expect(Object.keys(reply.json())).toEqual(['error', 'error_description'])
    expect(reply.json().error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    expect(reply.headers).toMatchObject({ 'cache-control': 'no-store', 'x-request-id': 'req_1' })
    expect(reply.headers['retry-after']).toBe(status === 429 || status === 503 ? '1' : undefined)
  })

  it('challenges only the scheme that was used', async () => {
    const send = thrower(new Problem('unauthorized'))
    expect((await send('a=1')).headers['www-authenticate']).toBeUndefined()
    expect((await send('a=1', { authorization: 'Basic eDp5' })).headers['www-authenticate']).toBe(
      'Basic realm="mayfly"',
    )
    expect((await send('a=1', { authorization: 'Bearer x' })).headers['www-authenticate']).toMatch(/^Bearer /)
  })

  it('keeps the shape for unknown paths and methods', async () => {
    const send = oauth((body) => body)
    expect((await send('a=1', {}, '/oauth/nothing')).json().error).toBe('invalid_request')
    expect((await send('a=1', {}, '/oauth/nothing')).statusCode).toBe(404)
  })
})
