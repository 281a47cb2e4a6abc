import { constants, type ServerHttp2Stream } from 'node:http2'
import { readHttp2 } from '../../rules/http2.ts'
import { pairsOf, toFields } from '../flat.ts'
import { endOnlyWhole, endWithTrailers } from '../whole-stream.ts'
import type { Inbound } from './inbound.ts'

/** Null: the request is malformed. `raw`: names and values in turn, with pseudo-headers. */
export function readStream(stream: ServerHttp2Stream, flags: number, raw: readonly string[]): Inbound | null {
  const request = readHttp2(pairsOf(raw))
  if (request === null) return null
  let received: readonly string[] = []
  let sent: readonly string[] = []
  let isComplete = false
  const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0
  if (hasBody) endOnlyWhole(stream)
  stream.on('error', () => undefined)
  stream.on('trailers', (_headers, _flags, ...more: unknown[]) => {
    received = (more[0] as string[] | undefined) ?? []
  })
  stream.on('wantTrailers', () => endWithTrailers(stream, toFields(sent)))
  stream.once('finish', () => {
    isComplete = true
  })
  return {
    ...{ method: request.method, target: request.target, headers: request.headers, body: stream },
    http2: { authority: request.authority },
    hasBody,
    expectsContinue: request.headers.some(([name]) => name === 'expect'),
    get isAnswered() {
      return stream.headersSent
    },
    trailers: () => received,
    sendContinue: () => inform(stream, 100, []),
    inform: (status, flat) => inform(stream, status, flat),
    respond: (status, flat, isOver) => {
      if (stream.destroyed || stream.closed) return stream
      const fields = { ':status': status, ...toFields(flat) }
      stream.respond(fields, { endStream: isOver, waitForTrailers: !isOver, sendDate: false } as object)
      return stream
    },
    sendTrailers: (flat) => {
      sent = flat
    },
    break: (code = constants.NGHTTP2_INTERNAL_ERROR) => stream.close(code),
    onClose: (listener) => {
      const report = () =>
        listener(isComplete && (stream.rstCode ?? constants.NGHTTP2_NO_ERROR) === constants.NGHTTP2_NO_ERROR)
      if (stream.closed && stream.destroyed) process.nextTick(report)
      else stream.once('close', report)
    },
  }
}

function inform(stream: ServerHttp2Stream, status: number, flat: readonly string[]): void {
  if (stream.headersSent || stream.closed) return
  try {
    stream.additionalHeaders({ ':status': status, ...toFields(flat) })
  } catch {
    // A header that Node does not write: the reply itself is still to come.
  }
}
