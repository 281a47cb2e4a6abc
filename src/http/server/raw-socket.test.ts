import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { get, H, HOSTILE, JSON_HEAD } from '../../../test/support/hostile-http.ts'
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
    return { a: (request.body as { a?: number }).a ?? null }
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

describe('hostile HTTP', () => {
  it.concurrent.each(HOSTILE)('%s', async (_name, bytes, status, code) => {
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

  it('queues a bounded number of requests on one connection, and closes it after the first beyond', async () => {
    const one = 'GET /item/1 HTTP/1.1\r\nHost: x\r\n\r\n'
    let seen = 0
    const count = () => {
      seen += 1
    }
    server.server.on('request', count)
    const reply = exchange(`GET /slow HTTP/1.1\r\nHost: x\r\n\r\n${one.repeat(40)}`)
    await expect.poll(() => seen).toBe(41)
    server.server.off('request', count)
    release()
    const statuses = [...(await reply).matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status)
    expect(statuses).toEqual([...Array(17).fill('200'), '429'])
    expect(await reply).toMatch(/connection: close\r\n[^{]*\{"error":\{"code":"rate_limited"/i)
    await expectAlive()
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
    expectProblem(reply, 408, 'invalid_request')
  })
})
