import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from './server.ts'
import type { UnreadLimits } from './unread-replies.ts'

/** More than the kernel takes from a client that does not read. */
const BODY = Buffer.alloc(16 << 20)

let server: HttpServer
afterEach(() => server.close())

async function listen(unread: Partial<UnreadLimits>): Promise<number> {
  let count = 0
  server = createHttpServer({
    log: { error: () => {}, warn: () => {}, debug: () => {} },
    unread: { checkMs: 10, ...unread },
    newRequestId: () => `req_${++count}`,
  })
  server.get('/large', (_request, reply) => reply.type('application/octet-stream').send(BODY))
  server.get('/small', () => ({ ok: true }))
  await server.listen({ port: 0, host: '127.0.0.1' })
  return (server.server.address() as { port: number }).port
}

/** Asks, and reads nothing. */
async function ask(port: number, path: string, from = '127.0.0.1', times = 1): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(times))
  return socket
}
const connections = () =>
  new Promise((resolve) => server.server.getConnections((_error, count) => resolve(count)))

/** Whether the rest of the reply comes. */
async function isWhole(socket: Socket): Promise<boolean> {
  let size = 0
  socket.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > BODY.length) socket.end()
  })
  await once(socket, 'close')
  return size > BODY.length
}

it('closes the connections of a site that have waited longest, and no other', async () => {
  const port = await listen({ perSite: 40 << 20, graceMs: 0 })
  const other = await ask(port, '/large', '127.0.9.1')
  const sockets = [await ask(port, '/large'), await ask(port, '/large')]
  await expect.poll(connections).toBe(3)
  for (let n = 0; n < 4; n += 1) sockets.push(await ask(port, '/large'))
  await expect.poll(connections).toBeLessThanOrEqual(4)
  const whole = await Promise.all([other, ...sockets].map(isWhole))
  expect([whole.at(0), whole.at(1), whole.at(-1)]).toEqual([true, false, true])
})

it('bounds all sites together, at the cost of the one that has most', async () => {
  const port = await listen({ total: 40 << 20, graceMs: 0 })
  const other = await ask(port, '/large', '127.0.9.1')
  const sockets: Socket[] = []
  for (let n = 0; n < 4; n += 1) sockets.push(await ask(port, '/large'))
  await expect.poll(connections).toBeLessThanOrEqual(3)
  expect((await Promise.all([other, ...sockets].map(isWhole))).slice(0, 2)).toEqual([true, false])
})

it('counts replies behind the first one of their connection', async () => {
  const port = await listen({ perSite: 40 << 20, graceMs: 0 })
  const [pipelined] = await Promise.all([
    ask(port, '/large', '127.0.0.1', 4),
    ask(port, '/large', '127.0.9.1'),
  ])
  await expect.poll(connections).toBe(1)
  pipelined.destroy()
})

it('closes none that may be on its way', async () => {
  const port = await listen({ perSite: 1, total: 1, graceMs: 600_000 })
  const socket = await ask(port, '/large')
  // Several looks.
  for (let n = 0; n < 20; n += 1) expect((await fetch(`http://127.0.0.1:${port}/small`)).status).toBe(200)
  expect(await isWhole(socket)).toBe(true)
})
