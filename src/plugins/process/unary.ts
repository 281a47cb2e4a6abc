import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { FRAME_HEAD_BYTES, frameOf, messageIn } from './grpc-frame.ts'

/** Far longer than any call of ours: a call without a deadline waits for its signal. */
const NO_DEADLINE_MS = 3_600_000

export interface UnaryTransport extends Transport {
  close(): void
}

/**
 * Calls with one message each way, as gRPC sends them over HTTP/2, for the clients that connect makes. Connect's own transport
 * passes each message through a chain of generators, at twice the cost, and takes a status from HTTP where the plugin sent none.
 */
export function unaryTransport(open: () => ClientHttp2Session, maxBytes: number): UnaryTransport {
  let session: ClientHttp2Session | undefined
  const current = () => {
    if (session !== undefined && !session.closed && !session.destroyed) return session
    session = open()
    // What fails, fails its calls as well; this only keeps the process alive.
    session.on('error', () => undefined)
    return session
  }
  return {
    async unary(method, signal, timeoutMs, _header, message) {
      const request = toBinary(method.input, create(method.input, message))
      const way = { signal, timeoutMs: timeoutMs ?? NO_DEADLINE_MS, maxBytes }
      const reply = await call(current(), `/${method.parent.typeName}/${method.name}`, request, way)
      return {
        ...{ stream: false, service: method.parent, method, header: new Headers(), trailer: new Headers() },
        message: fromBinary(method.output, reply),
      }
    },
    stream: () => Promise.reject(new ConnectError('no streams', Code.Unimplemented)),
    close: () => session?.destroy(),
  }
}

interface Way {
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
  readonly maxBytes: number
}

async function call(
  session: ClientHttp2Session,
  path: string,
  request: Uint8Array,
  way: Way,
): Promise<Buffer> {
  const { signal, timeoutMs, maxBytes } = way
  if (signal?.aborted === true) throw new ConnectError('given up', Code.Canceled)
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': `${Math.ceil(timeoutMs)}m`,
  })
  const { promise, reject } = Promise.withResolvers<never>()
  const give = (code: Code, says: string) => {
    stream.close(constants.NGHTTP2_CANCEL)
    reject(new ConnectError(says, code))
  }
  const timer = setTimeout(() => give(Code.DeadlineExceeded, 'no answer in time'), timeoutMs)
  const onAbort = () => give(Code.Canceled, 'given up')
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    const replying = readReply(stream, maxBytes, () => give(Code.ResourceExhausted, 'the reply is too long'))
    stream.end(frameOf(request))
    return await Promise.race([replying, promise])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Resolves with the message. Rejects with the status that the other side sent, or `Internal` where it sent none. */
function readReply(stream: ClientHttp2Stream, maxBytes: number, onTooLong: () => void): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const parts: Buffer[] = []
  let length = 0
  let ends: IncomingHttpHeaders = {}
  // A reply without a message has its status here.
  stream.once('response', (headers) => {
    ends = headers
  })
  stream.once('trailers', (trailers) => {
    ends = trailers
  })
  stream.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes + FRAME_HEAD_BYTES) onTooLong()
    else parts.push(chunk)
  })
  stream.once('error', (error) => reject(new ConnectError(error.message, Code.Internal)))
  stream.once('close', () => {
    const status = statusOf(ends)
    const body = messageIn(Buffer.concat(parts))
    if (status !== undefined) reject(status)
    else if (body === undefined || body.isCompressed)
      reject(new ConnectError('the reply is no message', Code.Internal))
    else resolve(body.message)
  })
  return promise
}

/** `undefined`: the call succeeded. */
function statusOf(ends: IncomingHttpHeaders): ConnectError | undefined {
  const { 'grpc-status': status, 'grpc-message': message, 'mayfly-detail': detail } = ends
  if (status === '0') return undefined
  if (status === undefined) return new ConnectError('the reply has no status', Code.Internal)
  const metadata = {
    'grpc-status': String(status),
    ...(detail === undefined ? {} : { 'mayfly-detail': String(detail) }),
  }
  const code = Number(status)
  return new ConnectError(unescaped(String(message ?? '')), code in Code ? code : Code.Unknown, metadata)
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
