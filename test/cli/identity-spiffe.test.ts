import { once } from 'node:events'
import { chmod, chown, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import { describe, expect, test } from 'vitest'
import { startServer, tokenFor, useJobs } from './identity-support.ts'
import { runCli } from './support.ts'

const jobs = useJobs()

interface Call {
  readonly headers: IncomingHttpHeaders
  readonly audience: string
}
type Answer = (stream: ServerHttp2Stream, call: Call) => void

/** A response with these JWT-SVIDs, as the library of buf encodes it. */
function responseOf(...tokens: readonly string[]): Buffer {
  const writer = new BinaryWriter()
  for (const token of tokens) {
    const svid = new BinaryWriter().tag(1, 2).string('spiffe://example.org/job').tag(2, 2).string(token)
    writer.tag(1, 2).bytes(svid.tag(3, 2).string('a hint').finish())
  }
  return frame(writer.finish())
}

function frame(message: Uint8Array, { flag = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(5)
  head[0] = flag
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, message])
}

/** As gRPC ends a call: the status in the trailers. */
function reply(stream: ServerHttp2Stream, body: Buffer, status = '0'): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }))
  stream.end(body)
}
/** Without a message: the status among the headers. */
const refuse = (status: string) => (stream: ServerHttp2Stream) =>
  stream.respond(
    { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status, 'grpc-message': 'ckr_1' },
    { endStream: true },
  )

/** A workload API on a unix socket, whose mode is that of SPIRE. */
async function startAgent(answer: Answer) {
  const calls: Call[] = []
  const server = createServer()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const reader = new BinaryReader(Buffer.concat(chunks).subarray(5))
      const [field] = reader.tag()
      const call = { headers, audience: field === 1 ? reader.string() : '' }
      calls.push(call)
      answer(stream, call)
    })
  })
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
  })
  const path = await listen(server)
  jobs.closing.unshift(async () => {
    for (const session of sessions) session.destroy()
  })
  return { calls, path }
}

async function listen(server: Server | ReturnType<typeof createServer>): Promise<string> {
  const path = join(jobs.home(), 'agent.sock')
  server.listen(path)
  await once(server, 'listening')
  await chmod(path, 0o777)
  jobs.closing.push(() => new Promise((done) => server.close(done)))
  return path
}

async function logIn(path: string, argv = ['login', '--identity', 'spiffe']) {
  const server = await startServer()
  jobs.closing.push(server.close)
  const address = path.startsWith('/') ? `unix://${path}` : path
  const env = { ...jobs.bareEnv(), MAYFLY_SERVER: server.url, SPIFFE_ENDPOINT_SOCKET: address }
  return { server, ...(await runCli(argv, { env })) }
}

describe('the workload API', () => {
  test('is asked as the specification says, and its first token is sent', async () => {
    const first = () => tokenFor('x')
    const { calls, path } = await startAgent((stream, { audience }) =>
      reply(stream, responseOf(tokenFor([audience], { sub: 'spiffe://example.org/job' }), first())),
    )
    const { code, server, stderr } = await logIn(path)
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(calls).toEqual([{ headers: expect.anything(), audience: server.url }])
    expect(calls[0]?.headers).toMatchObject({
      ':method': 'POST',
      ':path': '/SpiffeWorkloadAPI/FetchJWTSVID',
      'content-type': 'application/grpc',
      'workload.spiffe.io': 'true',
      te: 'trailers',
    })
    expect(server.shown()).toHaveLength(1)
  })

  test('get asks it by itself', async () => {
    const { path } = await startAgent((stream, { audience }) =>
      reply(stream, responseOf(tokenFor([audience]))),
    )
    expect(await logIn(path, ['get', 'demo'])).toMatchObject({ code: 0, stdout: 'the-secret\n' })
  })

  test('an address without slashes is one, too', async () => {
    const { path } = await startAgent((stream, { audience }) =>
      reply(stream, responseOf(tokenFor([audience]))),
    )
    expect(await logIn(`unix:${path}`)).toMatchObject({ code: 0 })
  })
})

describe('says why there is none', () => {
  test.each([
    ['7', /has no identity for this process/],
    ['12', /does not issue JWT-SVIDs/],
    ['14', /is not ready yet/],
    ['3', /gave no token: it refused/],
  ])('status %s', async (status, words) => {
    const { path } = await startAgent(refuse(status))
    const { code, stderr } = await logIn(path)
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(words) })
    expect(stderr).not.toContain('ckr_')
  })

  test.each(['tcp://127.0.0.1:8000', 'agent.sock', 'unix:agent.sock', 'unix:///x?y', 'http://x'])(
    'the address %s',
    async (address) => {
      expect(await logIn(address)).toMatchObject({
        code: 4,
        stderr: expect.stringMatching(/is not the address of a unix socket/),
      })
    },
  )

  test('no socket', async () => {
    expect(await logIn(join(jobs.home(), 'none'))).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/nothing answers at/),
    })
    await writeFile(join(jobs.home(), 'file'), '')
    expect(await logIn(join(jobs.home(), 'file'))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/is not a socket/),
    })
  })
})

describe('a hostile one', () => {
  test.each<[string, Answer, RegExp]>([
    ['without a token', (stream) => reply(stream, frame(Buffer.alloc(0))), /holds none/],
    ['without a message', (stream) => reply(stream, Buffer.alloc(0)), /holds none/],
    ['with half a head', (stream) => reply(stream, Buffer.from([0, 0])), /does not speak gRPC|holds none/],
    [
      'that is damaged',
      (stream) => reply(stream, frame(Buffer.from('\xff\xff\xff\xff\xff', 'latin1'))),
      /holds none/,
    ],
    ['whose length is a lie', (stream) => reply(stream, frame(Buffer.from([0x0a, 0x7f, 1]))), /holds none/],
    ['whose frame is a lie', (stream) => reply(stream, frame(responseOf('a'), { length: 9 })), /holds none/],
    ['that is compressed', (stream) => reply(stream, frame(responseOf('a'), { flag: 1 })), /holds none/],
    ['with no JWT', (stream) => reply(stream, responseOf('ckr_1')), /is not a signed JWT/],
    ['for another', (stream) => reply(stream, responseOf(tokenFor('https://other'))), /it was not sent/],
    ['of a megabyte', (stream) => reply(stream, responseOf('x'.repeat(1024 * 1024))), /more than 64 KiB/],
    [
      'without a status',
      (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
      /does not speak gRPC/,
    ],
    ['that is cut', (stream) => stream.session?.destroy(), /does not speak gRPC/],
  ])('answer %s is no token', async (_, answer, words) => {
    const { path } = await startAgent(answer)
    const { code, stderr, server } = await logIn(path)
    expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(words) })
    expect(stderr).not.toContain('ckr_')
    expect(server.got).toEqual([])
  })

  test.each<[string, (socket: Socket) => unknown]>([
    ['speaks HTTP/1', (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')],
    ['hangs up', (socket) => socket.destroy()],
  ])('one that %s', async (_, answer) => {
    const server = createPlainServer((socket) => {
      socket.on('error', () => {})
      // It sees that the command hangs up.
      socket.resume()
      answer(socket)
    })
    expect(await logIn(await listen(server))).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/does not speak gRPC/),
    })
  })

  test('one that is silent is not waited for', async () => {
    const { path } = await startAgent(() => {})
    const begin = performance.now()
    expect(await logIn(path)).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/did not answer in time/),
    })
    // It never answers.
    expect(performance.now() - begin).toBeLessThan(30_000)
  })

  test.runIf(process.getuid?.() === 0)('one of another user is not asked', async () => {
    const { calls, path } = await startAgent((stream, { audience }) =>
      reply(stream, responseOf(tokenFor(audience))),
    )
    await chown(path, 12_345, 12_345)
    expect(await logIn(path)).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/belongs to another user; nothing was sent/),
    })
    expect(calls).toEqual([])
    // As that of SPIRE under a user of its own, in a directory of its own.
    await chown(jobs.home(), 12_345, 12_345)
    expect(await logIn(path)).toMatchObject({ code: 0 })
  })
})
