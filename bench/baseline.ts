/**
 * The baseline: a bare `node:http` server on the same Node, in its own process. It parses the body of each request
 * and sends a recorded reply, byte for byte. The parent sends the reply as the first message and gets the port back.
 */
import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RecordedReply {
  readonly status: number
  /** Name, value, name, value, … without the headers that Node adds. */
  readonly headers: readonly string[]
  readonly body: string
  /** Makes a signature with this algorithm on the thread pool before each reply to a POST. */
  readonly signs?: 'ES256' | 'RS256'
}

const keys = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}
/** As long as a typical token. */
const SIGNED = Buffer.alloc(500, 'a')

let reply: RecordedReply = { status: 200, headers: [], body: '' }

function answer(response: ServerResponse): void {
  response.writeHead(reply.status, [...reply.headers])
  response.end(reply.body)
}

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    answer(response)
    return
  }
  const isJson = request.headers['content-type'] === 'application/json'
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const text = (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).toString('utf8')
    const parsed: unknown = isJson ? JSON.parse(text) : new URLSearchParams(text)
    if (typeof parsed !== 'object') throw new Error('the body is not an object')
    if (reply.signs !== undefined) sign('sha256', SIGNED, keys[reply.signs], () => answer(response))
    else answer(response)
  })
})

process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit(0))
process.on('message', (recorded: RecordedReply) => {
  reply = recorded
  const sendPort = () => process.send?.({ port: (server.address() as AddressInfo).port })
  if (server.listening) sendPort()
  else server.listen(0, '127.0.0.1', sendPort)
})
