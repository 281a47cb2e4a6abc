import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createHttpServer, type HttpServer } from './server.ts'

let server: HttpServer
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server.close()
})

async function listen(trustedProxies: readonly string[] = []): Promise<number> {
  let count = 0
  server = createHttpServer({
    log: { error: () => {}, warn: () => {}, debug: () => {} },
    maxConnections: 12,
    trustedProxies,
    newRequestId: () => `req_${++count}`,
  })
  server.get('/ok', () => ({ ok: true }))
  await server.listen({ port: 0, host: '127.0.0.1' })
  return (server.server.address() as { port: number }).port
}

/** Whether a connection from this address is served. */
async function isServed(port: number, localAddress: string): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  sockets.push(socket)
  socket.on('error', () => {})
  socket.write('GET /ok HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  const [first] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
  return first instanceof Buffer
}
const servedOf = async (port: number, addresses: readonly string[]) => {
  const served: boolean[] = []
  for (const address of addresses) served.push(await isServed(port, address))
  return served
}

it('gives one site a quarter of the connections, and each one back that ends', async () => {
  const port = await listen()
  const site = ['127.0.7.1', '127.0.7.2', '127.0.7.3', '127.0.7.4']
  expect(await servedOf(port, site)).toEqual([true, true, true, false])
  expect(await isServed(port, '127.0.8.1')).toBe(true)
  sockets[0]?.destroy()
  await expect.poll(() => isServed(port, '127.0.7.9')).toBe(true)
  expect(await isServed(port, '127.0.7.9')).toBe(false)
})

it('gives proxies all that there are: many are behind them', async () => {
  const port = await listen(['127.0.7.0/24'])
  expect(await servedOf(port, Array(5).fill('127.0.7.1'))).toEqual(Array(5).fill(true))
  expect(await servedOf(port, Array(5).fill('127.0.0.1'))).toEqual(Array(5).fill(true))
})
