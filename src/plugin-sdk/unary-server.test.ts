import { once } from 'node:events'
import { type ClientHttp2Session, connect, createServer, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { unaryTransport } from '../plugins/process/unary.ts'
import { Health, HealthCheckRequestSchema } from '../plugins/proto/health_pb.ts'
import { createUnaryServer } from './unary-server.ts'

const MAX_BYTES = 1_000
const PATH = '/grpc.health.v1.Health/Check'

const started = Promise.withResolvers<void>()
const aborted = Promise.withResolvers<void>()
const calls = createUnaryServer(MAX_BYTES)
calls.add(Health, {
  check: async ({ service }, { signal }) => {
    if (service === 'denied')
      throw new ConnectError('Nicht für 100 % erlaubt', Code.PermissionDenied, { 'mayfly-detail': 'why' })
    if (service === 'bug') throw new Error('a secret')
    if (service === 'slow') {
      started.resolve()
      await once(signal, 'abort')
      aborted.resolve()
    }
    return { status: 1 }
  },
})
const server = createServer()
server.on('stream', calls.onStream)
let session: ClientHttp2Session
let url: string
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  session = connect(url)
})
afterAll(() => {
  session.destroy()
  server.close()
})

const message = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: 'any' }))

function frame(body: Uint8Array, { compressed = 0, length = body.length } = {}): Buffer {
  const head = Buffer.alloc(5)
  head[0] = compressed
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, body])
}

/** What the server answers to these bytes. */
async function send(body: Buffer, path = PATH): Promise<IncomingHttpHeaders> {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  stream.on('error', () => undefined)
  let ends: IncomingHttpHeaders = {}
  stream.on('response', (headers) => {
    ends = headers
  })
  stream.on('trailers', (trailers) => {
    ends = trailers
  })
  stream.resume()
  stream.end(body)
  await once(stream, 'close')
  return ends
}

const client = () =>
  createClient(
    Health,
    unaryTransport(() => connect(url), 10_000),
  )

test('answers one message with one message', async () => {
  expect(await client().check({ service: 'any' })).toMatchObject({ status: 1 })
  expect(await send(frame(message))).toMatchObject({ 'grpc-status': '0' })
})

test('sends the status, the message in any language, and the detail of a ConnectError', async () => {
  const error = await client()
    .check({ service: 'denied' })
    .catch((one: unknown) => one as ConnectError)
  expect(error).toMatchObject({ code: Code.PermissionDenied, rawMessage: 'Nicht für 100 % erlaubt' })
  expect((error as ConnectError).metadata.get('mayfly-detail')).toBe('why')
})

test('says nothing of any other error', async () => {
  const reply = client().check({ service: 'bug' })
  await expect(reply).rejects.toMatchObject({ code: Code.Internal, rawMessage: 'the plugin failed' })
})

test('tells the handler when the caller gives up', async () => {
  const stop = new AbortController()
  const asking = client().check({ service: 'slow' }, { signal: stop.signal })
  void started.promise.then(() => stop.abort())
  await expect(asking).rejects.toMatchObject({ code: Code.Canceled })
  await aborted.promise
})

test('tells the handler when the deadline is past, whatever its unit', async () => {
  for (const timeout of ['100m', '50000u', '1S', '1000000n']) {
    const stream = session.request({
      ':method': 'POST',
      ':path': PATH,
      'grpc-timeout': timeout,
      te: 'trailers',
    })
    const slow = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: 'slow' }))
    stream.end(frame(slow))
    const [trailers] = await once(stream.resume(), 'trailers')
    expect(trailers['grpc-status']).toBe('0')
  }
})

test.each([
  ['an unknown method', frame(message), '/grpc.health.v1.Health/Watch', Code.Unimplemented],
  ['no message', Buffer.alloc(0), PATH, Code.Internal],
  ['half a message', frame(message, { length: 900 }), PATH, Code.Internal],
  ['two messages', Buffer.concat([frame(message), frame(message)]), PATH, Code.Internal],
  ['a compressed message', frame(message, { compressed: 1 }), PATH, Code.Unimplemented],
  ['what is no message of this kind', frame(Buffer.from([0xff, 0xff, 0xff])), PATH, Code.Internal],
])('refuses %s', async (_, body, path, code) => {
  expect(await send(body, path)).toMatchObject({ ':status': 200, 'grpc-status': String(code) })
})

test('ends a request that is too long', async () => {
  expect(Object.hasOwn(await send(frame(Buffer.alloc(MAX_BYTES + 1))), 'grpc-status')).toBe(false)
  expect(await send(frame(message))).toMatchObject({ 'grpc-status': '0' })
})
