/**
 * The least that a proxy on Node can be, in its own process: `node:http` on both sides, kept connections, pipes. It knows no
 * secret and writes no record. The parent sends where the upstream is as the first message, and gets the port back.
 */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Start } from './start.ts'

const agent = new Agent({ keepAlive: true, maxFreeSockets: 64 })
let port = 0

const server = createServer((incoming, response) => {
  const { method, url: path, headers } = incoming
  const outgoing = request({ host: '127.0.0.1', port, method, path, headers, agent }, (reply) => {
    response.writeHead(reply.statusCode ?? 0, reply.headers)
    reply.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  incoming.pipe(outgoing)
})
server.keepAliveTimeout = 60_000

process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit(0))
process.on('message', (start: Start) => {
  port = start.upstream
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
})
