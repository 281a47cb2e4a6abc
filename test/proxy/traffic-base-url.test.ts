import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { Site } from '../../src/proxy/types.ts'
import { ask, sendRaw, textOf } from './traffic-clients.ts'
import {
  type HeldFake,
  heldFake,
  httpUse,
  listening,
  PLACEHOLDER,
  SECRET,
  type TrafficWorld,
  trafficWorld,
} from './traffic-world.ts'

const BEARER = { authorization: `Bearer ${PLACEHOLDER}` }
let answer: (request: IncomingMessage, response: ServerResponse) => void
const upstream = createServer((request, response) => answer(request, response))
upstream.on('checkContinue', (request, response) => answer(request, response))
let use: ReturnType<typeof httpUse>
let held: HeldFake
let world: TrafficWorld
let site: Site
let port: number

beforeAll(async () => {
  use = httpUse(`http://127.0.0.1:${await listening(upstream)}`)
  held = heldFake('api', [use])
  world = trafficWorld([held], { idleMs: 10_000 })
  site = await world.traffic.openSite(held, use)
  port = Number(new URL(site.url).port)
})
beforeEach(() => {
  world.lines.length = 0
  answer = (_request, response) => response.end('fine')
})
afterAll(async () => {
  await world.close()
  upstream.close()
})

const lineOf = async () => {
  await expect.poll(() => world.lines.length).toBe(1)
  return world.lines[0]
}

test('puts the secret in, and masks it where it comes back', async () => {
  let got: IncomingMessage | undefined
  answer = (incoming, response) => {
    got = incoming
    const given = incoming.headers.authorization ?? ''
    const encoded = Buffer.from(given).toString('base64')
    const body = JSON.stringify({ given, encoded, url: encodeURIComponent(given) })
    response.setHeader('set-cookie', [`t=${given}`, 'a=b'])
    response.setHeader('location', `/${SECRET}`)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  }
  const reply = await ask({ port, path: '/v1/x?y=1', headers: BEARER })
  expect(got?.headers['authorization']).toBe(`Bearer ${SECRET}`)
  expect(got?.headers.host).toBe(new URL(site.use.origin).host)
  expect(reply.status).toBe(200)
  const all = JSON.stringify(reply)
  for (const form of [
    SECRET,
    Buffer.from(`Bearer ${SECRET}`).toString('base64').slice(12, 40),
    encodeURIComponent(SECRET),
  ])
    expect(all).not.toContain(form)
  expect(Number(reply.headers['content-length'])).toBe(reply.body.length)
  expect(await lineOf()).toMatchObject({
    method: 'GET',
    status: 200,
    decision: 'injected',
    placeholder: 'api',
    credentialId: 'cred_api',
  })
  expect(world.lines[0]?.redacted).toBeGreaterThanOrEqual(4)
  expect(JSON.stringify(world.lines)).not.toContain('y=1')
})

test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
])(
  'reads a text that was compressed by %s although nobody asked, and masks it',
  async (encoding, compress) => {
    answer = (incoming, response) => {
      expect(incoming.headers['accept-encoding']).toBe('identity')
      const body = compress(`before ${SECRET} after`)
      response.writeHead(200, {
        'content-type': 'text/plain',
        'content-encoding': encoding,
        'content-length': body.length,
      })
      response.end(body)
    }
    const reply = await ask({ port, headers: BEARER })
    expect(reply.body).toBe(`before ${'*'.repeat(SECRET.length)} after`)
    expect(reply.headers).not.toHaveProperty('content-encoding')
    expect(reply.headers).not.toHaveProperty('content-length')
  },
)

test('passes on no text in an encoding that it cannot read', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'compress' })
    response.end(SECRET)
  }
  const reply = await ask({ port, headers: BEARER })
  expect(reply.status).toBe(502)
  expect(reply.body).toContain('proxy_broken')
})

test('sends each event on at once', async () => {
  let stream: ServerResponse | undefined
  answer = (_request, response) => {
    stream = response
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: one\n\n')
  }
  const outgoing = request({ port, headers: BEARER, agent: false }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const [first] = (await once(incoming, 'data')) as [Buffer]
  expect(String(first)).toBe('data: one\n\n')
  stream?.write('data: two\n\n')
  const [second] = (await once(incoming, 'data')) as [Buffer]
  expect(String(second)).toBe('data: two\n\n')
  stream?.end()
  await once(incoming, 'end')
})

test('a body that breaks is a connection that breaks', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { 'content-length': 1_000, 'content-type': 'text/plain' })
    response.write('the beginning')
    setImmediate(() => response.socket?.destroy())
  }
  await expect(ask({ port, headers: BEARER })).rejects.toThrow()
  expect(await lineOf()).toMatchObject({ status: 200, reason: 'broken' })
  world.lines.length = 0
  answer = (_request, response) => {
    response.write('chunked')
    setImmediate(() => response.socket?.destroy())
  }
  await expect(ask({ port, headers: BEARER })).rejects.toThrow()
})

test('an upstream that says nothing is 504, one that goes away 502', async () => {
  const hasty = trafficWorld([held], { idleMs: 1_000 })
  const { url } = await hasty.traffic.openSite(held, use)
  answer = () => undefined
  expect(await ask({ port: Number(new URL(url).port), headers: BEARER })).toMatchObject({ status: 504 })
  await hasty.close()
  answer = (incoming) => incoming.socket.destroy()
  const reply = await ask({ port, headers: BEARER })
  expect(reply.status).toBe(502)
  expect(reply.headers['x-mayfly-proxy']).toBe('failed')
})

test('a reply may take longer than the idle time, as long as something moves', async () => {
  // Long enough for a machine that stops for a second.
  const patient = trafficWorld([held], { idleMs: 2_500 })
  const { url } = await patient.traffic.openSite(held, use)
  answer = (_request, response) => {
    let left = 5
    const timer = setInterval(() => {
      response.write('.')
      left -= 1
      if (left > 0) return
      clearInterval(timer)
      response.end()
    }, 700)
  }
  expect((await ask({ port: Number(new URL(url).port), headers: BEARER })).body).toBe('.....')
  await patient.close()
})

test('passes on 100 Continue from the upstream, and its absence', async () => {
  answer = (incoming, response) => {
    response.writeContinue()
    void textOf(incoming).then((text) => response.end(text))
  }
  const send = async () => {
    const outgoing = request({
      port,
      method: 'PUT',
      agent: false,
      headers: { ...BEARER, expect: '100-continue', 'content-length': 4 },
    })
    outgoing.flushHeaders()
    const continued = once(outgoing, 'continue').then(() => outgoing.end('body'))
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    return { continued, status: incoming.statusCode, body: await textOf(incoming) }
  }
  const { continued, ...reply } = await send()
  await continued
  expect(reply).toEqual({ status: 200, body: 'body' })
  answer = (_request, response) => {
    response.writeHead(413, { connection: 'close' })
    response.end('no')
  }
  expect(await send()).toMatchObject({ status: 413, body: 'no' })
})

test.each([
  ['HEAD', 200, '12'],
  ['GET', 204, undefined],
  ['GET', 304, undefined],
])('a reply to %s with %i has no body, and the connection stays', async (method, status, length) => {
  answer = (_request, response) => {
    response.writeHead(status, length === undefined ? {} : { 'content-length': length })
    response.end()
  }
  const one = `${method} / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`
  const last = one.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')
  // Two in a row, without waiting for the first reply.
  const text = await sendRaw(port, one + last)
  expect(text.match(/^HTTP\/1\.1 (\d+)/gm)).toEqual([`HTTP/1.1 ${status}`, `HTTP/1.1 ${status}`])
  expect(text.toLowerCase()).not.toContain('transfer-encoding')
})

test('passes trailers on', async () => {
  answer = (_request, response) => {
    response.writeHead(200, { trailer: 'x-sum', 'content-type': 'text/plain' })
    response.write('body')
    response.addTrailers({ 'x-sum': SECRET })
    response.end()
  }
  const outgoing = request({ port, headers: BEARER, agent: false }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  expect(await textOf(incoming)).toBe('body')
  expect(incoming.trailers).toEqual({ 'x-sum': '*'.repeat(SECRET.length) })
})

test('returns redirects, and leads those within the origin back to itself', async () => {
  const locations = [`${site.use.origin}/next?a=1`, 'https://elsewhere.example/x', '/relative']
  const got: (string | undefined)[] = []
  for (const location of locations) {
    answer = (_request, response) => {
      response.writeHead(302, { location })
      response.end()
    }
    const reply = await ask({ port, headers: BEARER })
    expect(reply.status).toBe(302)
    got.push(reply.headers.location)
  }
  expect(got).toEqual([`${site.url}/next?a=1`, locations[1], locations[2]])
})

test('joins a WebSocket, with the secret in the handshake only', async () => {
  let handshake: IncomingMessage | undefined
  const onUpgrade = (incoming: IncomingMessage, socket: import('node:stream').Duplex) => {
    handshake = incoming
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Echo: ')
    socket.write(`${incoming.headers.authorization}\r\n\r\nhello ${SECRET}`)
    socket.pipe(socket)
    socket.on('error', () => undefined)
  }
  upstream.once('upgrade', onUpgrade)
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `GET /ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`,
  )
  let all = ''
  socket.on('data', (chunk) => {
    all += String(chunk)
  })
  await expect.poll(() => all).toContain('hello')
  socket.write(`echo ${PLACEHOLDER}`)
  await expect.poll(() => all).toContain(`echo ${PLACEHOLDER}`)
  expect(all).toContain('HTTP/1.1 101')
  expect(all).not.toContain(SECRET)
  expect(handshake?.headers.authorization).toBe(`Bearer ${SECRET}`)
  expect(handshake?.headers).not.toHaveProperty('sec-websocket-extensions')
  socket.end()
  await once(socket, 'close')
  expect(await lineOf()).toMatchObject({ status: 101, decision: 'injected' })
})

test('a message of a WebSocket arrives that ends as the secret begins', async () => {
  const message = `wait for ${SECRET.slice(0, 3)}`
  upstream.once('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    socket.write(message)
    socket.on('error', () => undefined)
  })
  const text = await sendRaw(
    port,
    `GET /ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`,
    new RegExp(`${message}$`),
  )
  expect(text).toContain(message)
})

test('returns the reply of an upstream that declines a WebSocket', async () => {
  answer = (_request, response) => {
    response.writeHead(400)
    response.end('nothing here.')
  }
  const text = await sendRaw(
    port,
    `GET /ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer ${PLACEHOLDER}\r\n\r\n`,
  )
  expect(text).toMatch(/^HTTP\/1.1 400 /)
  expect(text).toContain('nothing here')
})

test.each([
  ['ended', 403],
  ['unsure', 503],
] as const)('a credential that is %s is used for nothing', async (state, status) => {
  const { state: live } = held
  held.state = { state, why: 'test' }
  const called = vi.fn()
  answer = called
  const reply = await ask({ port, headers: BEARER })
  held.state = live
  expect(reply.status).toBe(status)
  expect(reply.body).toContain(`proxy_${state}`)
  expect(called).not.toHaveBeenCalled()
})

test('uses a renewed secret from the next request on', async () => {
  const seen: (string | undefined)[] = []
  answer = (incoming, response) => {
    seen.push(incoming.headers.authorization)
    response.end()
  }
  await ask({ port, headers: BEARER })
  const { state: live } = held
  if (live.state !== 'live') throw new Error('not live')
  held.state = { ...live, credentialId: 'cred_next', secrets: new Map([['', 'another-secret-1234']]) }
  await ask({ port, headers: BEARER })
  held.state = live
  expect(seen).toEqual([`Bearer ${SECRET}`, 'Bearer another-secret-1234'])
})

test('https at a base URL has a leaf of the run', async () => {
  const secure = await world.traffic.openSite(held, site.use, { tls: true })
  const { request: requestTls } = await import('node:https')
  const outgoing = requestTls(secure.url, { ca: world.certificate, headers: BEARER, agent: false }).end()
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  expect(secure.url).toMatch(/^https:\/\/127\.0\.0\.1:/)
  expect(await textOf(incoming)).toBe('fine')
})

test.each([[{}], [{ connection: 'Upgrade', upgrade: 'websocket' }]])(
  'an address that is never connected to is refused, and recorded as that (%o)',
  async (headers) => {
    use = httpUse('http://169.254.169.254')
    const inside = heldFake('inside', [use])
    const own = trafficWorld([inside])
    onTestFinished(() => own.close())
    const { url } = await own.traffic.openSite(inside, use)
    const { status, body } = await ask({
      port: Number(new URL(url).port),
      headers: { ...BEARER, ...headers },
    })
    expect([status, body]).toEqual([403, expect.stringContaining('proxy_address_not_allowed')])
    await expect.poll(() => own.lines).toMatchObject([{ decision: 'refused', reason: 'address_not_allowed' }])
  },
)
