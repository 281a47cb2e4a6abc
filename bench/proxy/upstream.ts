/**
 * The upstream of all proxies, in its own process, and the server that takes the record of ours. Answers with a small JSON text, sends
 * as many bytes as the path names (`/down/1048576`, `/text/1048576`), and reads whatever is posted. Sends its port to the parent.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const SMALL = JSON.stringify({
  id: 42,
  name: 'orders',
  items: Array.from({ length: 40 }, (_, n) => ({ n, sku: `sku-${n}` })),
})
const BLOCK_BYTES = 65_536
const BINARY = Buffer.alloc(BLOCK_BYTES, 0xa5)
const TEXT = Buffer.from(SMALL.repeat(Math.ceil(BLOCK_BYTES / SMALL.length))).subarray(0, BLOCK_BYTES)

function small(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(SMALL) })
  response.end(SMALL)
}

async function sendMuch(response: ServerResponse, type: string, block: Buffer, bytes: number): Promise<void> {
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes })
  for (let left = bytes; left > 0 && !response.destroyed; left -= block.length) {
    if (!response.write(left < block.length ? block.subarray(0, left) : block)) await once(response, 'drain')
  }
  response.end()
}

const server = createServer((request, response) => {
  const [, kind, bytes] = (request.url ?? '').split('/')
  if (request.method !== 'GET') {
    // The reply to the record has no body.
    request.on('end', () => (kind === 'api' ? response.writeHead(204).end() : small(response)))
    request.resume()
  } else if (kind === 'down')
    void sendMuch(response, 'application/octet-stream', BINARY, Number(bytes)).catch(() => undefined)
  else if (kind === 'text')
    void sendMuch(response, 'application/json', TEXT, Number(bytes)).catch(() => undefined)
  else small(response)
})
server.keepAliveTimeout = 60_000

process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
