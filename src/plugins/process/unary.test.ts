import { connect, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { toBinary } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Health, HealthCheckResponseSchema } from '../proto/health_pb.ts'
import { callFault } from './connection.ts'
import { type UnaryTransport, unaryTransport } from './unary.ts'

const body = Buffer.from(
  toBinary(HealthCheckResponseSchema, { $typeName: 'grpc.health.v1.HealthCheckResponse', status: 1 }),
)
const framed = (message: Buffer, flag = 0) => {
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}
const HEAD = { ':status': 200, 'content-type': 'application/grpc' }

function answerWith(stream: ServerHttp2Stream, parts: Buffer, trailers: Record<string, string>): void {
  stream.respond(HEAD, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  stream.end(parts)
}

/** What a server may answer, and what becomes of it. */
const ANSWERS: readonly [string, (stream: ServerHttp2Stream) => void, string][] = [
  ['an answer', (stream) => answerWith(stream, framed(body), { 'grpc-status': '0' }), 'answered'],
  [
    'a status of its own',
    (stream) => answerWith(stream, Buffer.alloc(0), { 'grpc-status': '7', 'grpc-message': 'not%20you' }),
    'denied: not you',
  ],
  [
    'a status in place of an answer',
    (stream) => stream.respond({ ...HEAD, 'grpc-status': '3', 'grpc-message': 'no %' }, { endStream: true }),
    'unsupported: no %',
  ],
  ['403 of HTTP', (stream) => stream.respond({ ':status': 403 }, { endStream: true }), 'unavailable'],
  ['no status', (stream) => answerWith(stream, framed(body), {}), 'unavailable'],
  [
    'an unknown status',
    (stream) => answerWith(stream, Buffer.alloc(0), { 'grpc-status': '99', 'grpc-message': 's3cret' }),
    'unavailable',
  ],
  ['no message', (stream) => answerWith(stream, Buffer.alloc(0), { 'grpc-status': '0' }), 'unavailable'],
  [
    'two messages',
    (stream) => answerWith(stream, Buffer.concat([framed(body), framed(body)]), { 'grpc-status': '0' }),
    'unavailable',
  ],
  [
    'a compressed one',
    (stream) => answerWith(stream, framed(body, 1), { 'grpc-status': '0' }),
    'unavailable',
  ],
  [
    'half a message',
    (stream) => answerWith(stream, framed(body).subarray(0, 6), { 'grpc-status': '0' }),
    'unavailable',
  ],
  [
    'no message of the protocol',
    (stream) => answerWith(stream, framed(Buffer.from('ffffffffffff', 'hex')), { 'grpc-status': '0' }),
    'unavailable',
  ],
  ['a reset', (stream) => stream.close(2), 'unavailable'],
  ['an end of the connection', (stream) => stream.session?.destroy(), 'unavailable'],
  [
    'an answer without end',
    (stream) => {
      stream.respond(HEAD)
      const more = () => {
        while (!stream.destroyed && stream.write(Buffer.alloc(65_536)));
        if (!stream.destroyed) stream.once('drain', more)
      }
      more()
    },
    'unavailable',
  ],
  ['nothing', () => undefined, 'timeout'],
]

let server: Http2Server
let transport: UnaryTransport
beforeAll(async () => {
  server = createServer()
  server.on('sessionError', () => undefined)
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined).resume()
    stream.once('end', () => {
      const wanted = ANSWERS[Number(headers['grpc-timeout']?.slice(0, -1)) % 1_000]
      wanted?.[1](stream)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  transport = unaryTransport(() => connect(`http://127.0.0.1:${port}`), 1_024)
})
afterAll(() => {
  transport.close()
  server.close()
})

it.each(ANSWERS.map(([name, , outcome], index) => [name, outcome, index] as const))(
  'of a server that sends %s makes: %s',
  async (_, outcome, index) => {
    // The deadline says which answer is wanted; that of a call which gets none is short enough to wait for, and no other is met.
    const timeoutMs = (outcome === 'timeout' ? 1_000 : 60_000) + index
    const calling = createClient(Health, transport).check({ service: 'x' }, { timeoutMs })
    const said = await calling.then(
      ({ status }) => (status === 1 ? 'answered' : 'something else'),
      (error: unknown) => {
        const { fault, message } = callFault(error, 'test', (text) => text)
        return message.startsWith('The plugin test') ? fault : `${fault}: ${message}`
      },
    )
    expect(said).toBe(outcome)
  },
)

it('stops when its signal fires, and asks nothing when it has', async () => {
  const abort = new AbortController()
  const silent = ANSWERS.length - 1
  const calling = createClient(Health, transport).check(
    { service: 'x' },
    { timeoutMs: 60_000 + silent, signal: abort.signal },
  )
  abort.abort()
  const error = await calling.catch((reason: unknown) => reason)
  expect(callFault(error, 'test', (text) => text, abort.signal).fault).toBe('timeout')
  await expect(createClient(Health, transport).check({}, { signal: abort.signal })).rejects.toThrow(
    'given up',
  )
})
