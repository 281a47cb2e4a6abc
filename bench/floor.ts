/**
 * The floor: a bare `node:http` server on the same Node, as a process of its own. It parses the JSON body it is sent
 * and answers a recorded reply, byte for byte. The first message holds that reply; it answers with its port.
 */
import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RecordedReply {
  readonly status: number
  /** Name, value, name, value, … without those that Node sets by itself. */
  readonly headers: readonly string[]
  readonly body: string
  /** Before each reply to a POST, such a signature of what is as long as a token is made on the thread pool. */
  readonly signs?: 'ES256' | 'RS256'
}

const keys = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}
const TOKEN = Buffer.alloc(500, 'a')

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
    if (typeof parsed !== 'object') throw new Error('not what was expected')
    if (reply.signs !== undefined) sign('sha256', TOKEN, keys[reply.signs], () => answer(response))
    else answer(response)
  })
})

process.on('SIGINT', () => undefined)
process.on('disconnect', () => process.exit(0))
process.on('message', (recorded: RecordedReply) => {
  reply = recorded
  const say = () => process.send?.({ port: (server.address() as AddressInfo).port })
  if (server.listening) say()
  else server.listen(0, '127.0.0.1', say)
})
