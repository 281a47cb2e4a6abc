import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createNetServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { newAuthority } from '../../test/cli/certificates.ts'
import { newHome } from '../../test/cli/support.ts'
import { startApp } from '../../test/support/app.ts'
import { cut, json, problem, scripted, thrown } from '../../test/support/scripted-server.ts'
import { nodeTransport } from '../cli/frame/transport.ts'
import { type Auth, createClient, MayflyError, type Transport, UnreachableError } from './client.ts'
import { fetchTransport } from './transport.ts'

const bearer = (token: string): Auth => ({ kind: 'bearer', token })

describe('trying again', () => {
  const ok = json(201, { id: 'cred_1', token: 't', backend: 'demo', scopes: [], ttl: '1m' })
  const client = (server: string, retries = 2) => createClient({ server, auth: bearer('x'), retries })

  test('issuing is repeated under one key, also when the answer was lost', async () => {
    const server = await scripted(
      cut,
      problem(503, 'store_unavailable'),
      problem(409, 'conflict', { 'retry-after': '0' }),
      ok,
    )
    expect((await client(server.url, 3).issue({ backend: 'demo' })).id).toBe('cred_1')
    const keys = server.seen.map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(4)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]).toMatch(/^[\x21-\x7e]{20,255}$/)
    await server.close()
  })

  test('a repeated answer without its secret is asked for under a new key', async () => {
    const server = await scripted(json(201, { id: 'cred_0' }), ok)
    expect((await client(server.url).issue({ backend: 'demo' })).token).toBe('t')
    expect(new Set(server.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(2)
    await server.close()
  })

  test('does not repeat a request that may have taken effect', async () => {
    const server = await scripted(cut, ok)
    const error = await thrown(client(server.url).requestScopes({ scopes: ['a:b'] }))
    expect(error).toBeInstanceOf(UnreachableError)
    expect(error).toMatchObject({ reason: 'reset', mayHaveArrived: true })
    expect(server.seen).toHaveLength(1)
    await server.close()
  })

  test('a request that may have taken effect is reported as such, even if the server is gone then', async () => {
    const server = await scripted((request) => {
      cut(request)
      void server.close()
    })
    const error = await thrown(client(server.url).issue({ backend: 'demo' }))
    expect(error).toMatchObject({ reason: 'reset', mayHaveArrived: true })
    expect(server.seen).toHaveLength(1)
  })

  test('503 is not repeated for what may have been done, 429 is', async () => {
    const busy = await scripted(problem(503, 'store_unavailable'), json(200, {}))
    expect(await thrown(client(busy.url).requestScopes({ scopes: ['a:b'] }))).toMatchObject({ status: 503 })
    expect(busy.seen).toHaveLength(1)
    await busy.close()
    const many = await scripted(
      problem(429, 'rate_limited', { 'retry-after': '0' }),
      json(200, { id: 'enr_1' }),
    )
    expect(await client(many.url).requestScopes({ scopes: ['a:b'] })).toEqual({ id: 'enr_1' })
    await many.close()
  })

  test('a Retry-After that is too long is thrown, not waited for', async () => {
    const server = await scripted(problem(429, 'rate_limited', { 'retry-after': '3600' }))
    expect(await thrown(client(server.url).status())).toMatchObject({
      retryAfterSeconds: 3600,
      requestId: undefined,
    })
    expect(server.seen).toHaveLength(1)
    await server.close()
  })

  test('it gives up after the last try', async () => {
    const server = await scripted(problem(503, 'store_unavailable'))
    expect(await thrown(client(server.url, 1).status())).toMatchObject({ code: 'store_unavailable' })
    expect(server.seen).toHaveLength(2)
    await server.close()
  })

  test.each([400, 403, 404, 500, 502, 504])('%i is an answer, and not asked again', async (status) => {
    const server = await scripted(problem(status, 'backend_error'))
    expect(await thrown(client(server.url).status())).toBeInstanceOf(MayflyError)
    expect(server.seen).toHaveLength(1)
    await server.close()
  })

  test('a signal ends the waiting', async () => {
    const stop = new AbortController()
    const server = await scripted((_, response) => {
      problem(503, 'store_unavailable', { 'retry-after': '9' })(_, response)
      response.on('close', () => stop.abort(new Error('stopped')))
    })
    expect(await thrown(client(server.url).status({ signal: stop.signal }))).toMatchObject({
      message: 'stopped',
    })
    await server.close()
  })
})

describe('another service than Mayfly', () => {
  const client = (server: string) => createClient({ server, auth: bearer('ckr_secret'), retries: 0 })
  test.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
    ['a page', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ['an error page', (_, response) => response.writeHead(502).end('<html>Bad gateway')],
    ['null', json(404, null)],
    ['a list', json(404, [])],
    ['a number for a code', json(400, { error: { code: 1, message: 'x' } })],
  ])('%s', async (_, answer) => {
    const server = await scripted(answer)
    expect(await thrown(client(server.url).status())).toMatchObject({ code: 'unexpected_reply' })
    await server.close()
  })

  test('a redirect is not followed: the bearer stays here', async () => {
    const other = await scripted(json(200, {}))
    const server = await scripted((_, response) => response.writeHead(307, { location: other.url }).end())
    expect(await thrown(client(server.url).status())).toMatchObject({ code: 'unexpected_reply', status: 307 })
    expect(other.seen).toEqual([])
    await server.close()
    await other.close()
  })

  test('a listing that is not a list', async () => {
    const server = await scripted(json(200, { entries: 1 }))
    const read = async () => {
      for await (const one of client(server.url).active()) expect(one).toBeUndefined()
    }
    expect(await thrown(read())).toMatchObject({ code: 'unexpected_reply' })
    await server.close()
  })

  test.each([
    ['a next page that is the same again', () => 'a', 2],
    ['next pages in a circle', (page: number) => 'abc'[page % 3], 4],
    ['always another next page', (page: number) => String(page), 10_001],
  ])('%s ends the listing', async (_, cursorOf, pages) => {
    let page = 0
    const transport: Transport = async () => {
      const link = `</v1/active?cursor=${cursorOf(page)}>; rel="next"`
      page += 1
      return { status: 200, header: (name) => (name === 'link' ? link : undefined), text: '[{}]' }
    }
    const endless = createClient({ server: 'http://127.0.0.1:9', auth: bearer('x'), transport })
    const read = async () => {
      for await (const one of endless.active()) expect(one).toEqual({})
    }
    expect(await thrown(read())).toMatchObject({
      code: 'unexpected_reply',
      message: 'The listing does not end.',
    })
    expect(page).toBe(pages)
  })

  test('a page with more than it may have', async () => {
    const server = await scripted(json(200, Array(1_001).fill({})))
    const read = async () => {
      for await (const one of client(server.url).active()) expect(one).toBeUndefined()
    }
    expect(await thrown(read())).toMatchObject({ code: 'unexpected_reply' })
    await server.close()
  })

  test.each([
    ['fetch', fetchTransport],
    ['node:http', nodeTransport()],
  ])('an endless answer is cut after 32 MiB, and not asked for again: %s', async (_, transport) => {
    const piece = Buffer.alloc(1024 * 1024, ' ')
    let sent = 0
    const closed = Promise.withResolvers<void>()
    const server = await scripted((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const write = () => {
        sent += 1
        if (!response.destroyed) response.write(piece, write)
      }
      response.on('close', closed.resolve)
      write()
    })
    const endless = createClient({ server: server.url, auth: bearer('x'), transport, retries: 3 })
    expect(await thrown(endless.status())).toMatchObject({
      code: 'unexpected_reply',
      message: 'The answer is larger than 32 MiB.',
    })
    await closed.promise
    expect(server.seen).toHaveLength(1)
    expect(sent).toBeLessThan(100)
    await server.close()
  })

  test('a next page elsewhere is asked for here', async () => {
    const server = await scripted(
      json(200, [{ id: 1 }], { link: '<http://evil.example/v1/active?cursor=abc&x=1>; rel="next"' }),
      json(200, [{ id: 2 }]),
    )
    const ids: unknown[] = []
    for await (const one of client(server.url).active()) ids.push(one.id)
    expect(ids).toEqual([1, 2])
    expect(server.seen[1]?.url).toBe('/v1/active?cursor=abc')
    await server.close()
  })
})

describe('names and ids in addresses', () => {
  test.each(['a/b', 'a?b', 'a#b', 'ä b', '%2e%2e', 'a\\b', '..%2f', 'a\nb'])(
    '%j is one part',
    async (name) => {
      const server = await scripted(json(200, {}))
      await createClient({ server: server.url, auth: bearer('x') }).admin.agents.show(name)
      expect(server.seen[0]?.url).toBe(`/v1/admin/agents/${encodeURIComponent(name)}`)
      await server.close()
    },
  )

  test.each(['', '.', '..'])('%j is refused before anything is sent', async (name) => {
    const server = await scripted(json(200, {}))
    const client = createClient({ server: server.url, auth: bearer('x') })
    expect(await thrown(client.admin.agents.delete(name))).toMatchObject({
      code: 'invalid_request',
      status: 0,
    })
    expect(server.seen).toEqual([])
    await server.close()
  })

  test.each(['ftp://x', 'http://u:p@x', 'http://:p@x', 'https://x/?a=b', 'https://x/#y', 'x'])(
    '%s is no server',
    (server) => {
      expect(() => createClient({ server, auth: { kind: 'none' } })).toThrow(TypeError)
    },
  )
})

describe('no answer', () => {
  const client = (server: string) =>
    createClient({ server, auth: { kind: 'none' }, retries: 0, timeoutMs: 60_000 })

  test('connection refused', async () => {
    const server = await scripted(json(200, {}))
    await server.close()
    expect(await thrown(client(server.url).health())).toMatchObject({
      reason: 'refused',
      mayHaveArrived: false,
    })
  })

  test('the name is unknown', async () => {
    expect(await thrown(client('http://nowhere.invalid').health())).toMatchObject({
      reason: 'dns',
      mayHaveArrived: false,
    })
  })

  test('no reply in time', async () => {
    const server = createNetServer(() => {})
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const silent = createClient({
      server: `http://127.0.0.1:${port}`,
      auth: { kind: 'none' },
      retries: 0,
      timeoutMs: 50,
    })
    expect(await thrown(silent.health())).toMatchObject({ reason: 'timeout', mayHaveArrived: true })
    server.close()
  })

  test('certificates: of an unknown authority', async () => {
    const { home } = await newHome()
    const authority = await newAuthority(home)
    const { certFile, keyFile } = await authority.issue({
      name: 'good',
      dns: ['localhost'],
      ips: ['127.0.0.1'],
    })
    const tls = await startApp({ argv: { tlsCertFile: certFile, tlsKeyFile: keyFile } })
    const error = await thrown(client(tls.url.replace('http:', 'https:')).health())
    expect(error).toMatchObject({ reason: 'tls_untrusted', mayHaveArrived: false })
    await tls.close()
  })
})
