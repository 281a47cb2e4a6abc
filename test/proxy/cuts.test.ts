import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type Attacked, attacked, BEARER, head } from './attacks-world.ts'
import { ask } from './traffic-clients.ts'

const STREAMS = 100

/** Each opens one stream, and resolves when it works with what tells of its end. */
const KINDS: Record<string, (of: Attacked) => Promise<{ readonly end: Promise<unknown> }>> = {
  'server-sent events': async ({ port }) => {
    const outgoing = request({ port, path: '/sse', headers: BEARER, agent: false }).end()
    ignore(outgoing)
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    await once(incoming, 'data')
    return { end: brokenOf(incoming) }
  },
  download: async ({ port }) => {
    const outgoing = request({ port, path: '/down', headers: BEARER, agent: false }).end()
    ignore(outgoing)
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
    await once(incoming, 'data')
    return { end: brokenOf(incoming.resume()) }
  },
  upload: async ({ port }) => {
    const headers = { ...BEARER, 'content-length': 1_000_000_000 }
    const outgoing = request({ port, method: 'POST', path: '/up', headers, agent: false })
    const ended = brokenOf(outgoing)
    outgoing.write(Buffer.alloc(1_000_000))
    return { end: ended }
  },
  WebSocket: async ({ port }) => {
    const socket = connect(port, '127.0.0.1')
    const ended = brokenOf(socket)
    socket.write(head(port, ['Connection: Upgrade', 'Upgrade: websocket'], { line: 'GET /ws HTTP/1.1' }))
    await once(socket, 'data')
    return { end: ended }
  },
}

/** Of the request, beside that of its reply. */
function ignore(stream: NodeJS.EventEmitter): void {
  stream.on('error', () => undefined)
}

function brokenOf(stream: NodeJS.EventEmitter): Promise<unknown> {
  return new Promise((resolve) => stream.once('error', (error) => resolve(error)))
}

function serveStreams(of: Attacked): { readonly sockets: Set<Socket> } {
  const sockets = new Set<Socket>()
  of.upstream.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  of.upstream.on('upgrade', (_request, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello')
  })
  of.answer((incoming, response) => {
    incoming.on('error', () => undefined).resume()
    if (incoming.url === '/sse') response.write('data: 1\n\n')
    else if (incoming.url === '/down') {
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      const timer = setInterval(() => response.write(Buffer.alloc(16_384)), 20)
      response.once('close', () => clearInterval(timer))
    } else if (incoming.url !== '/up') response.end('fine')
  })
  return { sockets }
}

test.each(Object.entries(KINDS))(
  `${STREAMS} open streams (%s) are reset within a second of the cut`,
  { timeout: 60_000 },
  async (kind, open) => {
    await using of = await attacked()
    const { sockets } = serveStreams(of)
    const ends = await Promise.all(Array.from({ length: STREAMS }, () => open(of)))
    await expect.poll(() => sockets.size).toBe(STREAMS)
    const began = performance.now()
    of.world.cuts.cut('cred_api')
    const times = await Promise.all(
      ends.map(async ({ end }) => {
        expect(await end).toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) })
        return performance.now() - began
      }),
    )
    await expect.poll(() => sockets.size).toBe(0)
    const sorted = times.sort((one, other) => one - other)
    const p99 = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0
    console.info(`cut of ${STREAMS} ${kind}: p99 ${p99.toFixed(0)} ms`)
    expect(p99).toBeLessThan(1_000)
  },
)

test('a connection to the upstream that just waits is closed, too', async () => {
  await using of = await attacked()
  const { sockets } = serveStreams(of)
  await ask({ port: of.port, headers: BEARER })
  expect(sockets.size).toBe(1)
  of.world.cuts.cut('cred_api')
  await expect.poll(() => sockets.size).toBe(0)
})
