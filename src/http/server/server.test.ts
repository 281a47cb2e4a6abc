import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { Type } from 'typebox'
import { describe, expect, it } from 'vitest'
import { useHttpServers } from '../../../test/support/http-server.ts'
import { optionalBody } from '../../api/shared.ts'
import { Problem } from '../../domain/problems.ts'
import type { HttpServer } from './server.ts'

const build = useHttpServers()

describe('replies', () => {
  it('carry the standard headers and an id of ours', async () => {
    const { server } = build()
    server.get('/x', () => ({ a: 1 }))
    const reply = await server.inject({
      url: '/x',
      headers: { 'x-request-id': 'theirs', 'request-id': 'theirs' },
    })
    expect(reply.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': 'req_1',
    })
  })

  it('are cached where the route says so, but never an error', async () => {
    const { server } = build()
    let fail = false
    const config = { cacheControl: 'public, max-age=300' }
    server.get(
      '/keys',
      {
        config,
        onRequest: (_request, reply, done) => {
          reply.header('x-own', '1')
          done()
        },
      },
      () => {
        if (fail) throw new Problem('store_unavailable')
        return { keys: [] }
      },
    )
    const good = await server.inject('/keys')
    expect(good.headers).toMatchObject({ 'cache-control': 'public, max-age=300', 'x-own': '1' })
    expect((await server.inject({ url: '/keys', method: 'HEAD' })).headers['cache-control']).toBe(
      'public, max-age=300',
    )
    fail = true
    expect((await server.inject('/keys')).headers).toMatchObject({
      'cache-control': 'no-store',
      'retry-after': '1',
    })
  })
})

describe('schemas', () => {
  const body = Type.Object(
    {
      n: Type.Optional(Type.Integer({ minimum: 0 })),
      tags: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z]+$' }))),
      kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
      metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    },
    { additionalProperties: false },
  )

  async function post(payload: unknown) {
    const { server } = build()
    server.post('/x', { schema: { body } }, (request) => request.body)
    return server.inject({
      method: 'POST',
      url: '/x',
      payload: JSON.stringify(payload),
      headers: { 'content-type': 'application/json; charset=UTF-8' },
    })
  }

  it.each([
    [{ n: '1' }, '"n" in the body must be integer.'],
    [{ n: true }, '"n" in the body must be integer.'],
    [{ n: -1 }, '"n" in the body must be >= 0.'],
    [{ secret_x: 1 }, 'The body has an unknown field; its fields are n, tags, kind, metadata.'],
    [{ tags: 'a' }, '"tags" in the body must be array.'],
    [{ tags: ['a', 'SECRET'] }, '"tags.1" in the body does not have the required form.'],
    [{ kind: 'SECRET' }, '"kind" in the body does not match any accepted form: "a", "b".'],
    [{ metadata: { SECRET: 1 } }, '"metadata.*" in the body must be string.'],
    [[], 'The body must be object.'],
  ])('take bodies as they are: %j', async (payload, message) => {
    const reply = await post(payload)
    expect(reply.json().error).toMatchObject({ code: 'invalid_request', message })
    expect(reply.statusCode).toBe(400)
  })

  const place = (name: string) =>
    Type.Object({ in: Type.Literal(name), [name]: Type.String() }, { additionalProperties: false })
  const rules = Type.Object(
    {
      path: Type.Optional(Type.String({ pattern: '^/' })),
      place: Type.Optional(Type.Union([place('a'), place('b')])),
    },
    { additionalProperties: false },
  )
  it.each([
    [{ SECRET: 1 }, '"rules" in the body has an unknown field; its fields are path, place.'],
    [{ path: 'SECRET' }, '"rules.path" in the body does not have the required form.'],
    [{ place: { in: 'SECRET' } }, '"rules.place" in the body does not match any accepted form.'],
    [[], '"rules" in the body does not match any accepted form.'],
    ['SECRET', '"rules" in the body does not match any accepted form.'],
  ])('say what is wrong of that branch of a union for which %j was meant', async (sent, message) => {
    const { server } = build()
    const body = Type.Object({ rules: Type.Union([rules, Type.Null()]) })
    server.post('/x', { schema: { body } }, (request) => request.body)
    const reply = await server.inject({ method: 'POST', url: '/x', payload: { rules: sent } })
    expect([reply.statusCode, reply.json().error.message]).toEqual([400, message])
    expect((await server.inject({ method: 'POST', url: '/x', payload: { rules: null } })).statusCode).toBe(
      200,
    )
  })

  it('give a handler what was sent', async () => {
    expect((await post({ n: 1, tags: ['a'], kind: 'b', metadata: { x: 'y' } })).json()).toEqual({
      n: 1,
      tags: ['a'],
      kind: 'b',
      metadata: { x: 'y' },
    })
  })

  it('coerce query and path, and nothing else', async () => {
    const { server } = build()
    const querystring = Type.Object(
      { limit: Type.Optional(Type.Integer()), scope: Type.Optional(Type.Array(Type.String())) },
      { additionalProperties: false },
    )
    server.get(
      '/x/:n',
      { schema: { querystring, params: Type.Object({ n: Type.Integer() }) } },
      (request) => ({ ...(request.query as object), n: (request.params as { n: number }).n }),
    )
    expect((await server.inject('/x/3?limit=5&scope=a')).json()).toEqual({ limit: 5, scope: ['a'], n: 3 })
    expect((await server.inject('/x/3?scope=a&scope=b')).json()).toEqual({ scope: ['a', 'b'], n: 3 })
    expect((await server.inject('/x/3?limit=x')).json().error.message).toBe(
      '"limit" in the query must be integer.',
    )
    for (const odd of ['0x10', '1e2', '5.0', '%2B5', '05', '%205', '5%20', '', '1&limit=2', '0b11', 'true']) {
      const reply = await server.inject(`/x/3?limit=${odd}`)
      expect([odd, reply.json().error?.message]).toEqual([odd, '"limit" in the query must be integer.'])
    }
    expect((await server.inject('/x/0?limit=-7')).json()).toEqual({ limit: -7, n: 0 })
    expect((await server.inject('/x/0x3')).json().error.message).toBe('"n" in the path must be integer.')
    expect((await server.inject('/x/3?limt=5')).json().error.message).toBe(
      'The query has an unknown field; its fields are limit, scope.',
    )
    expect((await server.inject('/x/y')).json().error.message).toBe('"n" in the path must be integer.')
  })

  it('may let a body be absent, but not null', async () => {
    const { server } = build()
    server.post('/must', { schema: { body } }, () => 'x')
    server.post('/may', { schema: { body: optionalBody(body) } }, (request) => ({
      absent: request.body === undefined,
    }))
    const send = (url: string, payload?: string, type = 'application/json') =>
      server.inject({
        method: 'POST',
        url,
        ...(payload === undefined ? {} : { payload }),
        headers: { 'content-type': type },
      })
    expect((await send('/may')).json()).toEqual({ absent: true })
    expect((await send('/may', undefined, 'text/plain')).json()).toEqual({ absent: true })
    expect((await server.inject({ method: 'POST', url: '/may' })).json()).toEqual({ absent: true })
    expect((await send('/may', '{}')).json()).toEqual({ absent: false })
    expect((await send('/may', '{"n":"1"}')).statusCode).toBe(400)
    expect((await send('/may', 'null')).json().error.message).toBe('The body is null.')
    expect((await send('/must')).json().error.message).toBe('The body must be object.')
  })
})

describe('listening', () => {
  const address = (server: HttpServer) => (server.server.address() as { port: number }).port

  it('finishes what is in progress when it closes, and closes what is idle', async () => {
    const { server } = build()
    const started = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    server.get('/slow', async () => {
      started.resolve()
      await gate.promise
      return { done: true }
    })
    await server.listen({ port: 0, host: '127.0.0.1' })
    const idle = connect(address(server), '127.0.0.1')
    await once(idle, 'connect')
    const busy = connect(address(server), '127.0.0.1')
    busy.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
    await started.promise
    const begun = performance.now()
    const closed = server.close()
    await once(idle.resume(), 'close')
    gate.resolve()
    const [chunk] = await once(busy, 'data')
    expect(String(chunk)).toContain('{"done":true}')
    await closed
    expect(performance.now() - begun, 'the keep-alive time is not waited for').toBeLessThan(9_000)
  })

  it('closes connections beyond the cap', async () => {
    const { server } = build({ maxConnections: 1 })
    await server.listen({ port: 0, host: '127.0.0.1' })
    const first = connect(address(server), '127.0.0.1')
    await once(first, 'connect')
    const second = connect(address(server), '127.0.0.1').on('error', () => {})
    await once(second.resume(), 'close')
    expect(first.destroyed).toBe(false)
    first.destroy()
  })

  it('reads the client address from trusted proxies only', async () => {
    for (const [trusted, ip] of [
      [['127.0.0.0/8'], '192.0.2.7'],
      [['10.0.0.0/8'], '127.0.0.1'],
      [[], '127.0.0.1'],
    ] as const) {
      const { server } = build({ trustedProxies: trusted })
      server.get('/ip', (request) => ({ ip: request.ip }))
      const reply = await server.inject({ url: '/ip', headers: { 'x-forwarded-for': '192.0.2.7' } })
      expect(reply.json()).toEqual({ ip })
    }
  })

  it('sets every limit on the server of Node', () => {
    const { server } = build()
    expect(server.server).toMatchObject({
      headersTimeout: 5_000,
      requestTimeout: 10_000,
      keepAliveTimeout: 10_000,
      timeout: 35_000,
      maxHeadersCount: 101,
      maxRequestsPerSocket: 10_000,
      maxConnections: 4_096,
    })
  })

  it('answers HEAD like GET, without the body', async () => {
    const { server } = build()
    server.get('/x', () => ({ a: 1 }))
    await server.listen({ port: 0, host: '127.0.0.1' })
    const head = httpRequest({ port: address(server), method: 'HEAD', path: '/x' }).end()
    const [reply] = await once(head, 'response')
    expect([reply.statusCode, reply.headers['content-length']]).toEqual([200, '7'])
    reply.resume()
  })
})
