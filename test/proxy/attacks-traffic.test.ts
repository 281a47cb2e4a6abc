import type { IncomingMessage } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Attacked, attacked, BEARER, head } from './attacks-world.ts'
import { ask, textOf } from './traffic-clients.ts'
import { PLACEHOLDER, SECRET } from './traffic-world.ts'

/** The attack list of ADR 0070 over real sockets, at a base URL; the rules alone are tested in `attacks.test.ts`. */

let it: Attacked
beforeAll(async () => {
  it = await attacked({ allow: [{ methods: ['*'], path: '/v1/**' }] })
})
afterAll(() => it[Symbol.asyncDispose]())
beforeEach(() => {
  it.arrived.length = 0
  it.world.lines.length = 0
  it.answer((_request, response) => response.end('fine'))
})

const statusOf = (reply: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(reply)?.[1])

/** Refused, in one reply, with nothing of it upstream, and recorded. */
async function expectRefused(reply: string, status: number): Promise<void> {
  expect(statusOf(reply)).toBe(status)
  expect(reply.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
  expect(reply).not.toContain(SECRET)
  expect(it.arrived).toHaveLength(0)
  // That of the test before may come late.
  await expect.poll(() => it.world.lines.map(({ decision }) => decision)).toContain('refused')
  expect(JSON.stringify(it.world.lines)).not.toContain(PLACEHOLDER)
}

test('these tests can fail: the same request without an attack passes', async () => {
  const reply = await it.raw(`${head(it.port, ['Content-Length: 2', 'Connection: close'])}hi`)
  expect(statusOf(reply)).toBe(200)
  expect(it.arrived[0]?.headers.authorization).toBe(`Bearer ${SECRET}`)
})

const SMUGGLED = `GET /v1/admin HTTP/1.1\r\nHost: x\r\n\r\n`

describe('framing', () => {
  test.each([
    ['CL+TE', ['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${SMUGGLED}`],
    ['TE+CL', ['Transfer-Encoding: chunked', 'Content-Length: 4'], `0\r\n\r\n${SMUGGLED}`],
    ['two CL', ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`], SMUGGLED],
    ['two equal CL', ['Content-Length: 2', 'Content-Length: 2'], 'hi'],
    ['CL with a list', ['Content-Length: 2, 2'], 'hi'],
    ['CL with a sign', ['Content-Length: +2'], 'hi'],
    ['CL in hex', ['Content-Length: 0x2'], 'hi'],
    ['obs-fold', ['X-One: a', ' Transfer-Encoding: chunked', 'Content-Length: 0'], ''],
    ['obs-fold in Transfer-Encoding', ['Transfer-Encoding:', ' chunked'], '0\r\n\r\n'],
    ['a bare LF between headers', ['X-One: a\nTransfer-Encoding: chunked', 'Content-Length: 0'], ''],
    ['a bare CR in a value', ['X-One: a\rTransfer-Encoding: chunked', 'Content-Length: 0'], ''],
    ['NUL in a value', ['X-One: a\0b', 'Content-Length: 0'], ''],
    ['a space before the colon', ['Transfer-Encoding : chunked', 'Content-Length: 0'], ''],
    ['`gzip, chunked`', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
    ['`chunked, chunked`', ['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n'],
    ['`xchunked`', ['Transfer-Encoding: xchunked'], '0\r\n\r\n'],
    ['`identity`', ['Transfer-Encoding: identity', 'Content-Length: 0'], ''],
    ['an underscore', ['Transfer_Encoding: chunked', 'Content-Length: 0'], ''],
  ])('%s is refused', async (_name, lines, body) => {
    await expectRefused(await it.raw(head(it.port, lines) + body), 400)
  })

  test.each([
    ['chunk extensions', `2;x="${'a'.repeat(20)}"\r\nhi\r\n0;y\r\n\r\n`],
    ['a chunk size in capitals', 'A\r\n0123456789\r\n0\r\n\r\n'],
  ])('%s do not go on', async (_name, body) => {
    let got = ''
    let bytes = ''
    it.answer((request, response) => {
      request.socket.on('data', (chunk) => {
        bytes += String(chunk)
      })
      void textOf(request).then((text) => {
        got = text
        response.end('fine')
      })
    })
    const reply = await it.raw(head(it.port, ['Transfer-Encoding: chunked', 'Connection: close']) + body)
    expect(statusOf(reply)).toBe(200)
    expect(['hi', '0123456789']).toContain(got)
    expect(bytes).not.toContain(';')
  })

  test.each([
    ['a chunk with a bare LF', '2\nhi\r\n0\r\n\r\n'],
    ['a chunk with a negative size', '-2\r\nhi\r\n0\r\n\r\n'],
    ['a chunk longer than it says', '2\r\nhello\r\n0\r\n\r\n'],
    [
      'a chunk size of 17 digits',
      '00000000000000002\r\nhi\r\n0\r\n\r\n'.replace('0000000000000000', 'f'.repeat(17)),
    ],
  ])('%s breaks the request upstream, too', async (_name, body) => {
    let isComplete = false
    it.answer((request) => {
      request.on('end', () => {
        isComplete = true
      })
      request.on('error', () => undefined)
    })
    const reply = await it.raw(head(it.port, ['Transfer-Encoding: chunked']) + body)
    expect(reply).not.toMatch(/^HTTP\/1\.1 2/)
    expect(isComplete).toBe(false)
  })

  test('what follows a request with a length is the next one, and judged', async () => {
    const second = `GET /admin HTTP/1.1\r\nHost: 127.0.0.1:${it.port}\r\nConnection: close\r\n\r\n`
    const reply = await it.raw(head(it.port, ['Content-Length: 0']) + second, 2_000)
    expect(reply.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 403'])
    expect(it.arrived).toHaveLength(1)
  })
})

describe('Host', () => {
  test.each([
    ['two Hosts', 'Host: a.example\r\nHost: b.example', 400],
    ['two equal Hosts', 'Host: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT', 400],
    ['no Host', '', 400],
    ['the upstream as Host', 'Host: api.example', 421],
    ['DNS rebinding: a name that leads here', 'Host: attacker.example:PORT', 421],
    ['Mayfly by another port', 'Host: 127.0.0.1:1', 421],
    ['a user in Host', 'Host: a@127.0.0.1:PORT', 400],
  ])('%s is refused', async (_name, host, status) => {
    const text = host.replaceAll('PORT', String(it.port))
    await expectRefused(await it.raw(head(it.port, ['Content-Length: 0'], { host: text })), status)
  })

  test.each([
    ['another authority', 'http://api.example/v1/x'],
    ['another port', 'http://127.0.0.1:1/v1/x'],
    ['a user', 'http://a:b@127.0.0.1:PORT/v1/x'],
  ])('absolute form with %s is refused', async (_name, target) => {
    const line = `POST ${target.replace('PORT', String(it.port))} HTTP/1.1`
    await expectRefused(await it.raw(head(it.port, ['Content-Length: 0'], { line })), 400)
  })

  test('CONNECT at a base URL opens nothing', async () => {
    const reply = await it.raw(`CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n`)
    expect(reply).not.toMatch(/^HTTP\/1\.1 2/)
  })
})

describe('a web page', () => {
  test.each([
    ['Origin', { origin: 'https://evil.example' }],
    ['Origin: null', { origin: 'null' }],
    ['its own Origin', { origin: 'http://127.0.0.1' }],
    ['Sec-Fetch-Site: cross-site', { 'sec-fetch-site': 'cross-site' }],
    ['Sec-Fetch-Site: same-site', { 'sec-fetch-site': 'same-site' }],
  ])('%s is refused at a base URL', async (_name, headers) => {
    const reply = await ask({ port: it.port, path: '/v1/x', headers: { ...BEARER, ...headers } })
    expect(reply.status).toBe(403)
    expect(reply.body).toContain('proxy_cross_site')
    expect(reply.headers).not.toHaveProperty('access-control-allow-origin')
    expect(it.arrived).toHaveLength(0)
  })

  test('a preflight gets nothing', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const reply = await ask({ port: it.port, method: 'OPTIONS', path: '/v1/x', headers })
    expect(reply.status).toBe(403)
  })

  test('a WebSocket of a page is refused', async () => {
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Origin: https://evil.example']
    await expectRefused(await it.raw(head(it.port, lines, { line: 'GET /v1/ws HTTP/1.1' })), 403)
  })
})

describe('headers of a connection', () => {
  const sent = async (lines: readonly string[]): Promise<IncomingMessage['headers']> => {
    expect(statusOf(await it.raw(head(it.port, ['Content-Length: 0', ...lines, 'Connection: close'])))).toBe(
      200,
    )
    return it.arrived[0]?.headers ?? {}
  }

  test('the names of every Connection line are removed', async () => {
    const lines = [
      'Connection: x-one',
      'X-One: 1',
      'Connection: X-Two, x-three',
      'X-Two: 2',
      'X-Three: 3',
      'X-Four: 4',
    ]
    const headers = await sent([
      ...lines,
      'Keep-Alive: timeout=5',
      'TE: gzip',
      'Proxy-Connection: keep-alive',
    ])
    expect(headers).toMatchObject({ 'x-four': '4' })
    for (const name of ['x-one', 'x-two', 'x-three', 'keep-alive', 'te', 'proxy-connection'])
      expect(headers).not.toHaveProperty(name)
  })

  test('none of ours, of proxies or of a client’s address goes on', async () => {
    const lines = [
      'X-Mayfly-Run: 1',
      'Proxy-Authorization: Basic eDp5',
      'X-Forwarded-For: 127.0.0.1',
      'Forwarded: for=1',
    ]
    const headers = await sent([...lines, 'X-Forwarded-Host: a.example', 'Via: 1.1 x'])
    expect(Object.keys(headers).filter((name) => /mayfly|proxy|forward|via/.test(name))).toEqual([])
  })

  test.each(['Host', 'Content-Length', 'Authorization', 'Content-Type'])(
    'Connection does not take %s away',
    async (name) => {
      await expectRefused(await it.raw(head(it.port, ['Content-Length: 0', `Connection: ${name}`])), 400)
    },
  )

  test('the names of every Connection line of a reply are removed', async () => {
    it.answer((request) => {
      const lines = [
        'Connection: x-one',
        'X-One: 1',
        'Connection: x-two',
        'X-Two: 2',
        'X-Three: 3',
        'Connection: close',
      ]
      request.socket.end(`HTTP/1.1 200 OK\r\n${lines.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`)
    })
    const { headers } = await ask({ port: it.port, path: '/v1/x', headers: BEARER })
    expect(headers).toMatchObject({ 'x-three': '3' })
    expect(headers).not.toHaveProperty('x-one')
    expect(headers).not.toHaveProperty('x-two')
  })
})

describe('upgrades', () => {
  test.each([
    ['h2c', ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']],
    ['TLS', ['Connection: Upgrade', 'Upgrade: TLS/1.2']],
    ['two protocols', ['Connection: Upgrade', 'Upgrade: websocket, h2c']],
    ['Upgrade without Connection', ['Upgrade: websocket']],
  ])('%s is not asked for upstream', async (_name, lines) => {
    const reply = await it.raw(head(it.port, [...lines, 'Connection: close'], { line: 'GET /v1/x HTTP/1.1' }))
    // Refused, or forwarded as a plain request.
    expect([200, 400]).toContain(statusOf(reply))
    for (const { headers } of it.arrived) {
      expect(headers).not.toHaveProperty('upgrade')
      expect(headers).not.toHaveProperty('http2-settings')
    }
  })

  test('a request hidden behind an upgrade that was declined is not forwarded', async () => {
    it.answer((_request, response) => {
      response.writeHead(426)
      response.end('no')
    })
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==']
    const hidden = `DELETE /admin HTTP/1.1\r\nHost: x\r\n\r\n`
    const reply = await it.raw(head(it.port, lines, { line: 'GET /v1/ws HTTP/1.1' }) + hidden)
    expect(reply.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 426'])
    expect(it.arrived.map(({ method }) => method)).toEqual(['GET'])
  })

  test('an upgrade with a body is refused', async () => {
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', `Content-Length: ${SMUGGLED.length}`]
    await expectRefused(await it.raw(head(it.port, lines, { line: 'GET /v1/ws HTTP/1.1' }) + SMUGGLED), 400)
  })

  test('an upstream that switches although nobody asked is broken', async () => {
    it.answer((request) => {
      request.socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n${SECRET}`,
      )
    })
    const reply = await ask({ port: it.port, path: '/v1/x', headers: BEARER })
    expect(reply.status).toBe(502)
    expect(reply.body).not.toContain(SECRET)
  })
})

describe('paths of Warden’s list', () => {
  test.each([
    ['%2e%2e', '/v1/%2e%2e/admin', 400],
    ['%2E.', '/v1/%2E./admin', 400],
    ['..%2f', '/v1/..%2fadmin', 400],
    ['..', '/v1/../admin', 400],
    ['%2f', '/v1/a%2fb', 403],
    ['//', '/v1//admin', 403],
    ['%5c', '/v1/..%5cadmin', 400],
    ['%00', '/v1/x%00.json', 400],
    ['%0d%0a', '/v1/x%0d%0aHost:%20y', 400],
    ['a broken escape', '/v1/%zz', 400],
    ['another path', '/admin', 403],
  ])('%s is refused, not decoded', async (_name, path, status) => {
    const line = `POST ${path} HTTP/1.1`
    await expectRefused(await it.raw(head(it.port, ['Content-Length: 0'], { line })), status)
  })

  test.each(['/v1/x%3Fadmin=1', '/v1/x%23y', '/v1/caf%C3%A9', '/v1/a%20b?q=%2e%2e%2f'])(
    '%s is sent as it came',
    async (path) => {
      expect((await ask({ port: it.port, path, headers: BEARER })).status).toBe(200)
      expect(it.arrived[0]?.url).toBe(path)
    },
  )
})
