import {
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { Failure } from '../failure.ts'
import { toFields } from '../flat.ts'
import { endOnlyWhole, endWithTrailers } from '../whole-stream.ts'
import type { Outbound, OutboundEvents, OutRequest } from './outbound.ts'
import type { Taken } from './sessions.ts'

/** A stream of this session. `authority`: for `:authority`. Throws where the session is closing or a header is malformed. */
export function sendByHttp2(
  { session, release }: Taken,
  of: OutRequest & { readonly scheme: string },
  on: OutboundEvents,
): Outbound {
  const { fields, authority } = requestFields(of)
  const promised = of.headers.some(([name]) => name.toLowerCase() === 'trailer')
  const stream = session.request(
    { ':method': of.method, ':path': of.target, ':scheme': of.scheme, ':authority': authority, ...fields },
    { endStream: !of.hasBody, waitForTrailers: promised && of.hasBody },
  )
  endOnlyWhole(stream)
  stream.once('close', release)
  let trailers: OutgoingHttpHeaders = {}
  stream.on('wantTrailers', () => endWithTrailers(stream, trailers))
  const state = listen(stream, on)
  return {
    body: stream,
    sendTrailers: (flat) => {
      trailers = toFields(flat)
    },
    break: (code = constants.NGHTTP2_CANCEL) => {
      state.isOver = true
      stream.on('error', () => undefined)
      stream.close(code)
    },
  }
}

function listen(stream: ClientHttp2Stream, on: OutboundEvents): { isOver: boolean } {
  const state = { isOver: false }
  let received: readonly string[] = []
  let hasEnded = false
  let hasReply = false
  const fail = (code?: number) => {
    if (state.isOver) return
    state.isOver = true
    on.onBroken(new Failure('broken'), code === constants.NGHTTP2_NO_ERROR ? undefined : code)
  }
  stream.on('error', () => fail(stream.rstCode))
  stream.on('continue', () => on.onContinue())
  stream.on('headers', (headers: IncomingHttpHeaders & { ':status'?: number }, _flags, raw) => {
    on.onInform(Number(headers[':status']), withoutPseudo(raw as unknown as string[]))
  })
  stream.on('trailers', (_headers, _flags, ...more: unknown[]) => {
    received = (more[0] as string[] | undefined) ?? []
  })
  stream.on('end', () => {
    hasEnded = true
  })
  // Node ends the body of a stream that was reset: what arrived before is not complete.
  stream.on('aborted', () => {
    // Without an error, the reply is whole and the rest of the request unwanted (RFC 9113 §8.1).
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) fail(stream.rstCode)
  })
  stream.on('close', () => {
    const isBroken = stream.rstCode !== undefined && stream.rstCode !== constants.NGHTTP2_NO_ERROR
    if (isBroken || !hasEnded || !hasReply) fail(stream.rstCode)
    state.isOver = true
  })
  stream.on('response', (headers, flags, ...more: unknown[]) => {
    hasReply = true
    on.onReply({
      status: Number(headers[':status']),
      headers: withoutPseudo(more[0] as string[]),
      body: stream,
      isOver: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0,
      trailers: () => received,
    })
  })
  return state
}

function requestFields(of: OutRequest) {
  let authority = ''
  const flat: string[] = []
  for (const [name, value] of of.headers) {
    const lower = name.toLowerCase()
    if (lower === 'host') authority = value
    else if (lower !== 'expect') flat.push(lower, value)
  }
  return { authority, fields: toFields(flat) }
}

function withoutPseudo(raw: readonly string[]): string[] {
  const flat: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? ''
    if (!name.startsWith(':')) flat.push(name, raw[at + 1] ?? '')
  }
  return flat
}
