import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer as createTls } from 'node:https'
import { createServer as createPlainTls, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { connectUpstream } from '../../src/proxy/traffic/upstream/connect.ts'
import { createTrust } from '../../src/proxy/trust.ts'
import { http2Through, secureThrough, textOf } from './traffic-clients.ts'
import {
  heldFake,
  httpUse,
  listening,
  PLACEHOLDER,
  type TrafficWorld,
  testCertificates,
  trafficWorld,
} from './traffic-world.ts'

const certificates = testCertificates('api.test', 'old.test', 'wild.test')
const { cert, key, ca } = certificates.server
type OnStream = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void
let onStream: OnStream
const MOST_STREAMS = 20
const sessions = new Set<ServerHttp2Session>()
const modern = createSecureServer({ cert, key, settings: { maxConcurrentStreams: MOST_STREAMS } })
modern.on('session', (session) => {
  sessions.add(session)
  session.on('error', () => undefined)
  session.once('close', () => sessions.delete(session))
})
modern.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
  stream.on('error', () => undefined)
  onStream(stream, headers)
})
let onOld: RequestListener
const old = createTls({ cert, key }, (request, response) => onOld(request, response))

/** Frames of HTTP/2 by hand. */
const frame = (type: number, flags: number, id: number, payload: Buffer | string = '') => {
  const body = Buffer.from(payload)
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(id, 5)
  return Buffer.concat([head, body])
}
/** `:status: 200` and a body that has no end. */
const BEGUN = Buffer.concat([frame(1, 4, 1, Buffer.from([0x88])), frame(0, 0, 1, 'begin')])
let onWild: (socket: TLSSocket) => void
const wild = createPlainTls({ cert, key, ALPNProtocols: ['h2'] }, (socket) => {
  socket.on('error', () => undefined)
  socket.write(frame(4, 0, 0))
  socket.once('data', () => onWild(socket))
})

let ports: { modern: number; old: number; wild: number }
let world: TrafficWorld
let url: string
let client: ClientHttp2Session
beforeAll(async () => {
  ports = { modern: await listening(modern), old: await listening(old), wild: await listening(wild) }
})
beforeEach(async () => {
  const to = (name: string, port: number) => httpUse(`https://${name}.test:${port}`, { ca, name })
  const one = heldFake('one', [to('api', ports.modern), to('old', ports.old), to('wild', ports.wild)])
  const two = heldFake('two', [to('api', ports.modern)], 'another-secret-9876543210', OTHER)
  world = trafficWorld([one, two])
  url = (await world.traffic.openForward()).url
})
afterEach(async () => {
  client.destroy()
  await world.close()
})
afterAll(() => {
  for (const session of sessions) session.destroy()
  for (const server of [modern, old, wild]) server.close()
  certificates.remove()
})

const OTHER = 'mfph_other00123456789abcdefghijklm'
const bearer = (placeholder = PLACEHOLDER) => ({ authorization: `Bearer ${placeholder}` })

async function open(name: 'api' | 'old' | 'wild' = 'api'): Promise<void> {
  const port = { api: ports.modern, old: ports.old, wild: ports.wild }[name]
  client = await http2Through(url, `${name}.test:${port}`, world.certificate)
  client.on('error', () => undefined)
}

function send(path: string, more: Record<string, string> = {}, body?: string): ClientHttp2Stream {
  const stream = client.request(
    { ':path': path, ...(body !== undefined && { ':method': 'POST' }), ...bearer(), ...more },
    { endStream: body === undefined },
  )
  if (body !== undefined) stream.end(body)
  return stream
}

/** The code with which it was reset; `end`: it ended in peace. */
async function endOf(stream: ClientHttp2Stream): Promise<number | 'end'> {
  let ended = false
  stream.on('error', () => undefined)
  stream.on('end', () => {
    ended = true
  })
  stream.resume()
  if (!stream.destroyed) await new Promise((resolve) => stream.once('close', resolve))
  return ended && !stream.rstCode ? 'end' : (stream.rstCode ?? -1)
}

test('a call of gRPC flows both ways at once and ends with trailers', async () => {
  onStream = (stream, headers) => {
    expect(headers['te']).toBe('trailers')
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '7', 'grpc-message': 'no' }))
    stream.on('data', (chunk) => stream.write(`<${chunk}>`))
    stream.on('end', () => stream.end())
  }
  await open()
  const stream = client.request({
    ...{ ':path': '/svc/Chat', ':method': 'POST', te: 'trailers', 'content-type': 'application/grpc' },
    ...bearer(),
  })
  for (const word of ['one', 'two']) {
    stream.write(word)
    const [chunk] = (await once(stream, 'data')) as [Buffer]
    expect(String(chunk)).toBe(`<${word}>`)
  }
  const [trailers, ended] = [once(stream, 'trailers'), endOf(stream)]
  stream.end()
  expect((await trailers)[0]).toMatchObject({ 'grpc-status': '7', 'grpc-message': 'no' })
  expect(await ended).toBe('end')
})

test('a reply that is trailers only ends with its head', async () => {
  onStream = (stream) => stream.respond({ ':status': 200, 'grpc-status': '12' }, { endStream: true })
  await open()
  const stream = send('/svc/None', { te: 'trailers' }, 'x')
  const [headers, flags] = await once(stream, 'response')
  expect(headers['grpc-status']).toBe('12')
  expect(flags & constants.NGHTTP2_FLAG_END_STREAM).not.toBe(0)
  expect(await endOf(stream)).toBe('end')
})

test('trailers of HTTP/1.1 arrive over HTTP/2', async () => {
  onOld = (request, response) => {
    expect(request.headers).not.toHaveProperty('te')
    response.writeHead(200, { trailer: 'x-sum' })
    response.write('body')
    response.addTrailers({ 'x-sum': '42' })
    response.end()
  }
  await open('old')
  const stream = send('/', { te: 'trailers' })
  const trailers = once(stream, 'trailers')
  expect(await textOf(stream)).toBe('body')
  expect((await trailers)[0]).toMatchObject({ 'x-sum': '42' })
})

test('an upstream of HTTP/1.1 is asked once whether it has HTTP/2, and that connection is used', async () => {
  let connections = 0
  const count = () => {
    connections += 1
  }
  old.on('secureConnection', count)
  onOld = (_request, response) => response.end('fine')
  await open('old')
  for (let at = 0; at < 3; at += 1) expect(await textOf(send('/'))).toBe('fine')
  old.off('secureConnection', count)
  expect(connections).toBe(1)
})

test.each([
  [
    'a reset',
    (socket: TLSSocket) => socket.write(Buffer.concat([BEGUN, frame(3, 0, 1, Buffer.from([0, 0, 0, 2]))])),
    2,
  ],
  [
    'a reset without an error',
    (socket: TLSSocket) => socket.write(Buffer.concat([BEGUN, frame(3, 0, 1, Buffer.alloc(4))])),
    constants.NGHTTP2_INTERNAL_ERROR,
  ],
  ['the end of the connection', (socket: TLSSocket) => socket.end(BEGUN), undefined],
  ['a broken connection', (socket: TLSSocket) => socket.write(BEGUN, () => socket.destroy()), undefined],
  [
    'a frame that nobody understands',
    (socket: TLSSocket) => socket.write(Buffer.concat([BEGUN, frame(0, 0, 0, 'x')])),
    undefined,
  ],
] as const)('a body that %s cuts off is reset, and has no end', async (_what, then, code) => {
  onWild = (socket) => void then(socket)
  await open('wild')
  const ended = await endOf(send('/'))
  expect(ended).not.toBe('end')
  expect(ended).not.toBe(0)
  if (code !== undefined) expect(ended).toBe(code)
})

test('a reset without an error behind the end of a reply harms nothing', async () => {
  const whole = Buffer.concat([frame(1, 4, 1, Buffer.from([0x88])), frame(0, 1, 1, 'whole')])
  onWild = (socket) => void socket.write(Buffer.concat([whole, frame(3, 0, 1, Buffer.alloc(4))]))
  await open('wild')
  const stream = client.request({ ':path': '/', ':method': 'POST', ...bearer() }, { endStream: false })
  stream.on('error', () => undefined)
  expect(await textOf(stream)).toBe('whole')
})

test('a reset without an error before any reply is an error', async () => {
  onWild = (socket) => void socket.write(frame(3, 0, 1, Buffer.alloc(4)))
  await open('wild')
  const stream = send('/')
  const [headers] = await once(stream, 'response')
  expect(headers[':status']).toBe(502)
})

test('a body of HTTP/1.1 that breaks is reset', async () => {
  onOld = (_request, response) => {
    response.write('begin', () => response.destroy())
  }
  await open('old')
  expect(await endOf(send('/'))).toBe(constants.NGHTTP2_INTERNAL_ERROR)
})

test('what the client resets is reset above, and nothing else', async () => {
  const reset = Promise.withResolvers<number | undefined>()
  const streams: ServerHttp2Stream[] = []
  onStream = (stream, headers) => {
    stream.respond()
    stream.write('begin')
    if (headers[':path'] === '/gone') stream.once('close', () => reset.resolve(stream.rstCode))
    else streams.push(stream)
  }
  await open()
  const [stays, gone] = [send('/stays'), send('/gone')]
  await Promise.all([once(stays, 'data'), once(gone, 'data')])
  gone.close(constants.NGHTTP2_CANCEL)
  expect(await reset.promise).toBe(constants.NGHTTP2_CANCEL)
  streams[0]?.end('end')
  expect(await textOf(stays)).toBe('end')
})

test('the end of a credential resets its streams only, and each has sessions of its own upstream', async () => {
  const seen = new Map<string, ServerHttp2Stream>()
  onStream = (stream, headers) => {
    stream.respond()
    stream.write('begin')
    seen.set(String(headers['authorization']), stream)
  }
  await open()
  const [first, second] = [send('/1'), send('/2', bearer(OTHER))]
  await Promise.all([once(first, 'data'), once(second, 'data')])
  const [one, two] = [...seen.values()]
  expect(one?.session).not.toBe(two?.session)
  world.cuts.cut('cred_one')
  expect(await endOf(first)).toBe(constants.NGHTTP2_INTERNAL_ERROR)
  seen.get('Bearer another-secret-9876543210')?.end('end')
  expect(await textOf(second)).toBe('end')
  expect(client.destroyed).toBe(false)
})

test('streams that are read slowly hold up no other, in either direction', async () => {
  const big = Buffer.alloc(1024 * 1024)
  onStream = (stream, headers) => {
    stream.respond()
    if (headers[':path'] === '/down') stream.end(big)
    else if (headers[':path'] === '/quick') stream.end('quick')
    // `/up` is never read.
  }
  await open()
  const slow = Array.from({ length: 8 }, (_, at) =>
    at % 2 === 0 ? send('/down') : send('/up', {}, big.toString('latin1')),
  )
  await Promise.all(slow.map((stream) => once(stream, 'response')))
  for (const stream of slow) stream.on('error', () => undefined).pause()
  expect(await textOf(send('/quick'))).toBe('quick')
  expect(await textOf(send('/quick', {}, 'small'))).toBe('quick')
})

test('more streams than an upstream allows at a time go by another session', async () => {
  const used = new Set<unknown>()
  onStream = (stream, headers) => {
    used.add(stream.session)
    stream.respond()
    stream.write('begin')
    if (headers[':path'] === '/quick') stream.end()
  }
  await open()
  const long = Array.from({ length: MOST_STREAMS }, () => send('/long'))
  await Promise.all(long.map((stream) => once(stream, 'data')))
  expect(await textOf(send('/quick'))).toBe('begin')
  expect(used.size).toBe(2)
})

test('after GOAWAY streams end as they would have, and new ones go by another session', async () => {
  const streams: ServerHttp2Stream[] = []
  onStream = (stream) => {
    stream.respond()
    stream.write('begin')
    streams.push(stream)
  }
  await open()
  const first = send('/1')
  await once(first, 'data')
  streams[0]?.session?.goaway(0, streams[0].id)
  streams[0]?.write('still')
  await once(first, 'data')
  const second = send('/2')
  await once(second, 'data')
  const both = Promise.all([textOf(first), textOf(second)])
  for (const stream of streams) stream.end('end')
  expect(await both).toEqual(['end', 'end'])
})

test('what the upstream did not begin with may be sent again', async () => {
  onWild = (socket) => void socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, 7])))
  await open('wild')
  expect(await endOf(send('/'))).toBe(constants.NGHTTP2_REFUSED_STREAM)
})

/** A header field of HPACK without an index, and without Huffman's code. */
const field = (name: string, value: string) =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

/** `@` stands for the right authority. */
const START = ':method GET|:scheme https|:authority @'
test.each([
  ['no method', ':scheme https|:authority @|:path /'],
  ['two paths', `${START}|:path /|:path /x`],
  ['a pseudo-header that comes late', `${START}|x y|:path /`],
  ['an unknown pseudo-header', `${START}|:path /|:host x`],
  ['a path in absolute form', `${START}|:path https://@/`],
  ['an empty path', `${START}|:path `],
  ['CONNECT', ':method CONNECT|:authority @'],
  ['an extended CONNECT', ':method CONNECT|:scheme https|:authority @|:path /|:protocol websocket'],
  ['upper case', `${START}|:path /|X-Key y`],
  ['a header of a connection', `${START}|:path /|connection x-key`],
  ['another authority', ':method GET|:scheme https|:authority other.test|:path /'],
  ['another Host', `${START}|:path /|host other.test`],
  ['a login in the authority', ':method GET|:scheme https|:authority x@@|:path /'],
  ['no authority', ':method GET|:scheme https|:path /'],
  ['a path that climbs', `${START}|:path /a/../b`],
])('a request with %s reaches no upstream', async (_what, text) => {
  let reached = 0
  onStream = (stream) => {
    reached += 1
    stream.respond({}, { endStream: true })
  }
  await open()
  const authority = `api.test:${ports.modern}`
  const socket = await secureThrough(url, authority, { ca: world.certificate, alpn: ['h2'] })
  const fields = `${text.replace(/@(?!@)/, authority)}|authorization Bearer ${PLACEHOLDER}`.split('|')
  const block = Buffer.concat(
    fields.map((one) => field(one.slice(0, one.indexOf(' ')), one.slice(one.indexOf(' ') + 1))),
  )
  socket.write(Buffer.concat([Buffer.from(PREFACE), frame(4, 0, 0), frame(1, 5, 1, block)]))
  // A ping that is answered, or a connection that ended: the request was seen.
  socket.write(frame(6, 0, 0, 'mayfly!!'))
  await new Promise<void>((resolve) => {
    let got = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      got = Buffer.concat([got, chunk])
      if (got.includes('mayfly!!')) resolve()
    })
    socket.once('close', () => resolve())
  })
  // Whoever comes later on the way was seen later.
  expect(await textOf(send('/after'))).toBe('')
  expect(reached).toBe(1)
  socket.destroy()
})

test('an upstream that breaks while nobody listens ends nothing but its connection', async () => {
  const { socket } = await connectUpstream(
    { scheme: 'https', host: 'api.test', port: ports.modern, ca, is: 'local' },
    '127.0.0.1',
    { alpn: ['h2'], timeoutMs: 10_000, onSocket: () => undefined, trust: createTrust() },
  )
  await open()
  // Not `once`, which listens for errors.
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
  await closed
})
