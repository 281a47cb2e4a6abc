import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import {
  create,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf'
import { Code, ConnectError } from '@connectrpc/connect'
import { FRAME_HEAD_BYTES, frameOf, messageIn } from '../plugins/process/grpc-frame.ts'

export interface CallContext {
  /** Fires when the caller gives up, or its deadline is past. */
  readonly signal: AbortSignal
}

/** What a service does, by the local names of its methods. Only a `ConnectError` says something to the caller. */
export type Methods<S extends DescService> = {
  readonly [M in keyof S['method']]: (
    request: MessageShape<S['method'][M]['input']>,
    context: CallContext,
  ) => MessageInitShape<S['method'][M]['output']> | Promise<MessageInitShape<S['method'][M]['output']>>
}

type Answer = (body: Uint8Array, context: CallContext) => Promise<Uint8Array>

const GRPC = { ':status': 200, 'content-type': 'application/grpc' } as const
/** "PROTOCOL-HTTP2", Timeout. */
const TIMEOUT = /^(\d{1,8})([HMSmun])$/
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
}
const LONGEST_MS = 86_400_000

/**
 * Serves calls with one message each way, as gRPC sends them over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md), uncompressed. Connect's own
 * adapter costs a plugin more of its time than most of them need for a credential.
 */
export function createUnaryServer(maxBytes: number) {
  const answers = new Map<string, Answer>()
  return {
    add<S extends DescService>(service: S, methods: Methods<S>): void {
      for (const method of service.methods) {
        const run = methods[method.localName as keyof S['method']]
        answers.set(`/${service.typeName}/${method.name}`, async (body, context) => {
          const request = fromBinary(method.input, body) as Parameters<typeof run>[0]
          return toBinary(method.output, create(method.output, await run(request, context)))
        })
      }
    },
    onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
      stream.on('error', () => undefined)
      void serve(stream, headers, answers.get(String(headers[':path'])), maxBytes)
    },
  }
}

async function serve(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  answer: Answer | undefined,
  maxBytes: number,
): Promise<void> {
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(), timeoutOf(headers))
  stream.once('close', () => stop.abort())
  try {
    if (answer === undefined) throw new ConnectError('there is no such method', Code.Unimplemented)
    const body = await readMessage(stream, maxBytes)
    const reply = await answer(body, { signal: stop.signal })
    if (!stream.writable) return
    stream.respond(GRPC, { waitForTrailers: true })
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(frameOf(reply))
  } catch (error) {
    fail(stream, error)
  } finally {
    clearTimeout(timer)
  }
}

function timeoutOf(headers: IncomingHttpHeaders): number {
  const [, digits, unit = ''] = TIMEOUT.exec(String(headers['grpc-timeout'] ?? '')) ?? []
  return Math.min(LONGEST_MS, digits === undefined ? LONGEST_MS : Number(digits) * (UNIT_MS[unit] ?? 1))
}

async function readMessage(stream: ServerHttp2Stream, maxBytes: number): Promise<Uint8Array> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBytes + FRAME_HEAD_BYTES)
      throw new ConnectError('the request is too long', Code.ResourceExhausted)
    parts.push(chunk)
  }
  const body = messageIn(Buffer.concat(parts))
  if (body === undefined) throw new ConnectError('the request is not one message', Code.Internal)
  if (body.isCompressed) throw new ConnectError('the request is compressed', Code.Unimplemented)
  return body.message
}

/** A status without a message, in the only headers. */
function fail(stream: ServerHttp2Stream, error: unknown): void {
  if (!stream.writable || stream.headersSent) return
  const { code, rawMessage, metadata } =
    error instanceof ConnectError ? error : new ConnectError('the plugin failed', Code.Internal)
  const more = Object.fromEntries(metadata)
  const status = {
    'grpc-status': String(code),
    'grpc-message': encodeURIComponent(rawMessage.toWellFormed()),
  }
  stream.respond({ ...GRPC, ...more, ...status }, { endStream: true })
}
