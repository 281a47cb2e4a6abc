import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from './server.ts'

let server: HttpServer
let port = 0
let handled = 0
let release: () => void = () => {}

beforeAll(async () => {
  let count = 0
  server = createHttpServer({
    log: { error: () => {}, warn: () => {}, debug: () => {} },
    newRequestId: () => `req_${++count}`,
    timeouts: { request: 400, headers: 200, check: 50, connection: 2_000 },
  })
  const body = Type.Object({ a: Type.Optional(Type.Number()) }, { additionalProperties: false })
  server.get('/ok', () => ({ ok: true }))
  server.post('/echo', { schema: { body } }, (request) => {
    handled += 1
    return { a: request.body.a ?? null }
  })
  server.get('/item/:id', (request) => ({ id: (request.params as { id: string }).id }))
  server.get('/slow', async () => {
    await new Promise<void>((resolve) => {
      release = resolve
    })
    return { slow: true }
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  port = (server.server.address() as { port: number }).port
})

afterAll(() => server.close())

async function dial(): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Sends the bytes and reads until the server closes; `Connection: close` is up to the case. */
async function exchange(text: string | Buffer): Promise<string> {
  const socket = await dial()
  let reply = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    reply += chunk
  })
  socket.write(text as string, 'latin1')
  await once(socket, 'close')
  return reply
}

function readReply(reply: string): { status: number; head: string; body: string } {
  const end = reply.indexOf('\r\n\r\n')
  const head = reply.slice(0, end)
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1])
  const body = reply.slice(end + 4)
  expect(body.length, 'the length is right and nothing follows').toBe(length)
  return { status: Number(head.slice(9, 12)), head, body }
}

function expectProblem(reply: string, status: number, code: string): void {
  const parsed = readReply(reply)
  expect({ status: parsed.status, body: parsed.body }).toMatchObject({ status })
  expect(parsed.head).toMatch(/^cache-control: no-store$/im)
  expect(parsed.head).toMatch(/^x-content-type-options: nosniff$/im)
  expect(parsed.head).toMatch(/^content-type: application\/json/im)
  const { error } = JSON.parse(parsed.body)
  expect(Object.keys(error)).toEqual(['code', 'message', 'request_id'])
  expect(error.code).toBe(code)
  expect(parsed.head.toLowerCase()).toContain(`x-request-id: ${error.request_id}`)
  expect(parsed.body).not.toContain('FST_')
}

async function expectAlive(): Promise<void> {
  const { status, body } = readReply(
    await exchange('GET /ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
  )
  expect({ status, body }).toEqual({ status: 200, body: '{"ok":true}' })
}

const H = 'Host: 127.0.0.1\r\nConnection: close\r\n'
const JSON_HEAD = `POST /echo HTTP/1.1\r\n${H}Content-Type: application/json\r\n`
const get = (target: string, headers = '') => `GET ${target} HTTP/1.1\r\n${H}${headers}\r\n`
const bad = 'invalid_request'

/** Name, bytes, status and code; no status: closed without an answer. */
const CASES: [string, string, number?, string?][] = [
  [
    'Content-Length and Transfer-Encoding',
    `${JSON_HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  [
    'Transfer-Encoding and Content-Length',
    `${JSON_HEAD}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  ['two Content-Length', `${JSON_HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`, 400, bad],
  ['two equal Content-Length', `${JSON_HEAD}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`, 400, bad],
  ['a list of Content-Length', `${JSON_HEAD}Content-Length: 2, 2\r\n\r\n{}`, 400, bad],
  ['a negative Content-Length', `${JSON_HEAD}Content-Length: -2\r\n\r\n{}`, 400, bad],
  ['a signed Content-Length', `${JSON_HEAD}Content-Length: +2\r\n\r\n{}`, 400, bad],
  ['a hexadecimal Content-Length', `${JSON_HEAD}Content-Length: 0x2\r\n\r\n{}`, 400, bad],
  ['an overflowing Content-Length', `${JSON_HEAD}Content-Length: 99999999999999999999\r\n\r\n{}`, 400, bad],
  ['Transfer-Encoding: xchunked', `${JSON_HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400, bad],
  [
    'Transfer-Encoding: gzip, chunked',
    `${JSON_HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  [
    'Transfer-Encoding: chunked, identity',
    `${JSON_HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  [
    'two Transfer-Encoding',
    `${JSON_HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  [
    'Transfer-Encoding in HTTP/1.0',
    `${JSON_HEAD.replace('1.1', '1.0')}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  ['a bad chunk size', `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400, bad],
  [
    'a chunk longer than its size',
    `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  [
    'a chunk size that ends in a bare LF',
    `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n`,
    400,
    bad,
  ],
  ['a body on GET', get('/ok', 'Content-Length: 3\r\n').concat('abc'), 400, bad],
  ['bare LF between headers', 'GET /ok HTTP/1.1\nHost: x\n\n', 400, bad],
  ['bare CR between headers', 'GET /ok HTTP/1.1\rHost: x\r\r', 400, bad],
  ['a space before the colon', get('/ok', 'X-A : 1\r\n'), 400, bad],
  ['a folded header', get('/ok', 'X-A: 1\r\n  2\r\n'), 400, bad],
  ['a header without a colon', get('/ok', 'garbage\r\n'), 400, bad],
  ['a header without a name', get('/ok', ': 1\r\n'), 400, bad],
  ['NUL in a header', get('/ok', 'X-A: a\0b\r\n'), 400, bad],
  ['NUL in a header name', get('/ok', 'X\0A: b\r\n'), 400, bad],
  ['HTTP/0.9', 'GET /ok\r\n\r\n', 400, bad],
  ['HTTP/0.9 in one line', 'GET /ok\r\n', 408, bad],
  ['HTTP/0.9 by number', `GET /ok HTTP/0.9\r\n${H}\r\n`, 400, bad],
  ['HTTP/2.0 by number', `GET /ok HTTP/2.0\r\n${H}\r\n`, 400, bad],
  ['the HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, bad],
  ['HTTP/1.2', `GET /ok HTTP/1.2\r\n${H}\r\n`, 400, bad],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, bad],
  ['an unknown method', `FOO /ok HTTP/1.1\r\n${H}\r\n`, 400, bad],
  ['a method in small letters', `get /ok HTTP/1.1\r\n${H}\r\n`, 400, bad],
  ['no Host', 'GET /ok HTTP/1.1\r\nConnection: close\r\n\r\n', 400, bad],
  ['an empty Host', 'GET /ok HTTP/1.1\r\nConnection: close\r\nHost:\r\n\r\n', 400, bad],
  ['two Host', get('/ok', 'Host: evil.example\r\n'), 400, bad],
  ['two Host in other letters', get('/ok', 'HOST: 127.0.0.1\r\n'), 400, bad],
  ['a Host with a path', 'GET /ok HTTP/1.1\r\nConnection: close\r\nHost: a/b\r\n\r\n', 400, bad],
  ['two Authorization', get('/ok', 'Authorization: Bearer a\r\nauthorization: Bearer b\r\n'), 400, bad],
  ['two Content-Type', `${JSON_HEAD}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`, 400, bad],
  ['a giant header', get('/ok', `X-A: ${'a'.repeat(20_000)}\r\n`), 431, 'headers_too_large'],
  ['101 headers', get('/ok', 'A: b\r\n'.repeat(99)), 431, 'headers_too_large'],
  ['2000 headers', get('/ok', 'A:b\r\n'.repeat(2_000)), 431, 'headers_too_large'],
  ['an address of 9000 characters', get(`/ok?${'a'.repeat(9_000)}`), 414, 'uri_too_long'],
  ['an address of 30000 characters', get(`/${'a'.repeat(30_000)}`), 414, 'uri_too_long'],
  ['a path parameter of 300 characters', get(`/item/${'a'.repeat(300)}`), 414, 'uri_too_long'],
  ['%00 in the path', get('/item/a%00b'), 400, bad],
  ['%00 in the query', get('/ok?a=%00'), 400, bad],
  ['a bad percent in the path', get('/item/%zz'), 400, bad],
  ['a bad percent in the query', get('/ok?a=%zz'), 400, bad],
  ['bad UTF-8 in the path', get('/item/%ff'), 400, bad],
  ['bad UTF-8 in the query', get('/ok?a=%c0%af'), 400, bad],
  ['raw bytes beyond ASCII in the path', get('/item/\xe9'), 400, bad],
  ['a fragment', get('/ok#x'), 400, bad],
  ['a space in the path', get('/o k'), 400, bad],
  ['.. segments', get('/item/../ok'), 404, 'not_found'],
  ['encoded .. segments', get('/%2e%2e/ok'), 404, 'not_found'],
  ['a double slash', get('//ok'), 404, 'not_found'],
  ['a trailing slash', get('/ok/'), 404, 'not_found'],
  ['capital letters', get('/OK'), 404, 'not_found'],
  ['the absolute form of another host', get('http://evil.example/ok'), 400, bad],
  ['the authority form', get('127.0.0.1:80'), 400, bad],
  ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${H}\r\n`, 400, bad],
  ['CONNECT', `CONNECT evil.example:443 HTTP/1.1\r\n${H}\r\n`],
  ['TRACE', `TRACE /ok HTTP/1.1\r\n${H}\r\n`, 405, 'method_not_allowed'],
  ['an unknown expectation', `${JSON_HEAD}Expect: magic\r\nContent-Length: 2\r\n\r\n{}`, 400, bad],
  [
    'Content-Encoding',
    `${JSON_HEAD}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'a body without Content-Type',
    `POST /echo HTTP/1.1\r\n${H}Content-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'a text body',
    `POST /echo HTTP/1.1\r\n${H}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'another charset',
    `POST /echo HTTP/1.1\r\n${H}Content-Type: application/json; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'a Content-Type that is none',
    `POST /echo HTTP/1.1\r\n${H}Content-Type: json\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  ['a body announced too large', `${JSON_HEAD}Content-Length: 65537\r\n\r\n`, 413, 'payload_too_large'],
  [
    'a body too large in chunks',
    `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n10001\r\n${' '.repeat(65_537)}\r\n0\r\n\r\n`,
    413,
    'payload_too_large',
  ],
  ['a body that is not JSON', `${JSON_HEAD}Content-Length: 2\r\n\r\n{]`, 400, bad],
  ['null as a body', `${JSON_HEAD}Content-Length: 4\r\n\r\nnull`, 400, bad],
  ['headers that never end', 'GET /ok HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n', 408, bad],
  ['a body that never ends', `${JSON_HEAD}Content-Length: 10\r\n\r\n{`, 408, bad],
]

describe('hostile HTTP', () => {
  it.concurrent.each(CASES)('%s', async (_name, bytes, status, code) => {
    const reply = await exchange(bytes)
    if (status === undefined) expect(reply).toBe('')
    else expectProblem(reply, status, code ?? '')
    await expectAlive()
  })
})

describe('HTTP that is unusual and right', () => {
  it.each([
    ['HTTP/1.0 without Host', 'GET /ok HTTP/1.0\r\n\r\n'],
    ['the absolute form of our host', get('http://127.0.0.1/ok')],
    ['an Upgrade that is not taken', get('/ok', 'Upgrade: websocket\r\n')],
    ['an empty line first', `\r\n${get('/ok')}`],
    ['a Content-Length of 0 on GET', get('/ok', 'Content-Length: 0\r\n')],
  ])('%s', async (_name, bytes) => {
    expect(readReply(await exchange(bytes))).toMatchObject({ status: 200, body: '{"ok":true}' })
  })

  it('takes chunks, and one body in two of them', async () => {
    const reply = await exchange(
      `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n`,
    )
    expect(readReply(reply)).toMatchObject({ status: 200, body: '{"a":1}' })
  })

  it('says 100 Continue when it is asked to', async () => {
    const reply = await exchange(`${JSON_HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`)
    expect(reply).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  })

  it('answers pipelined requests in order', async () => {
    const open = 'Host: x\r\n\r\n'
    const reply = await exchange(
      `GET /item/1 HTTP/1.1\r\n${open}GET /item/2 HTTP/1.1\r\n${open}${get('/item/3')}`,
    )
    expect([...reply.matchAll(/{"id":"(\d)"}/g)].map((match) => match[1])).toEqual(['1', '2', '3'])
  })

  it('takes nothing of a refused body for a request', async () => {
    const before = handled
    const inner = `POST /echo HTTP/1.1\r\n${H}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
    const outer = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${inner.length}\r\n\r\n`
    expectProblem(await exchange(outer + inner), 415, 'unsupported_media_type')
    expect(handled).toBe(before)
  })

  it('lets an answer in progress through before it closes on garbage', async () => {
    const socket = await dial()
    let reply = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      reply += chunk
    })
    const failed = once(server.server, 'clientError')
    socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n\0garbage\r\n\r\n')
    await failed
    expect(reply).toBe('')
    release()
    await once(socket, 'close')
    expect(readReply(reply)).toMatchObject({ status: 200, body: '{"slow":true}' })
    await expectAlive()
  })

  it('survives a caller that hangs up in the middle of a body', async () => {
    const socket = await dial()
    socket.write(`${JSON_HEAD}Content-Length: 10\r\n\r\n{`)
    socket.resetAndDestroy()
    await expectAlive()
  })

  it('answers 408 to a body that trickles in too slowly', async () => {
    const socket = await dial()
    let reply = ''
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      reply += chunk
    })
    socket.write(`${JSON_HEAD}Content-Length: 100\r\n\r\n`)
    const drip = setInterval(() => socket.write(' '), 20)
    await once(socket, 'close')
    clearInterval(drip)
    expectProblem(reply, 408, bad)
  })
})
