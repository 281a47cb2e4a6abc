import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { UnreachableError } from '../../client/errors.ts'
import type { StreamReply, TransportRequest } from '../../client/transport.ts'
import { CliError } from './failure.ts'
import { requestsTo, type TransportOptions } from './transport.ts'

/** A reply of any length over `node:http`, on a connection of its own. See `StreamTransport`. */
export function nodeStream(options: TransportOptions, request: TransportRequest): Promise<StreamReply> {
  const { signal, timeoutMs, body } = request
  const { outgoing, server } = requestsTo(options)(request)
  return new Promise((resolve, reject) => {
    const stop = () => outgoing.destroy(new Error('stopped'))
    const timer = setTimeout(
      () => outgoing.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
      timeoutMs,
    )
    outgoing.on('error', (cause) => {
      clearTimeout(timer)
      if (signal?.aborted === true) reject(signal.reason)
      else reject(cause instanceof CliError ? cause : new UnreachableError(server, cause))
    })
    outgoing.on('response', (incoming) => {
      clearTimeout(timer)
      resolve(replyOf(incoming))
    })
    outgoing.on('close', () => signal?.removeEventListener('abort', stop))
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted === true) stop()
    outgoing.end(body)
  })
}

function replyOf(incoming: IncomingMessage): StreamReply {
  const { statusCode = 0, headers } = incoming
  const header = (name: string) => {
    const value = headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }
  return { status: statusCode, header, body: Readable.toWeb(incoming) as ReadableStream<Uint8Array> }
}
