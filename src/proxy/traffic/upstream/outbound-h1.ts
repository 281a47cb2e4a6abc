import { type Agent, type IncomingMessage, request } from 'node:http'
import { reset } from '../../sockets.ts'
import { Failure, failureOf } from '../failure.ts'
import { pairsOf } from '../flat.ts'
import type { Outbound, OutboundEvents, OutRequest } from './outbound.ts'

export const MAX_HEADER_BYTES = 64 * 1024
/** Methods whose requests have a body by their nature, so that its absence is said. */
const WITH_BODY = /^(POST|PUT|PATCH)$/
/** Of the names that are looked at: `te`, `cookie`, `content-length`. */
const LENGTHS = new Set([2, 6, 14])

/** Sends by a connection of this agent, which connects to the checked address only. */
export function sendByHttp1(agent: Agent, of: OutRequest, on: OutboundEvents): Outbound {
  const headers: string[] = []
  let hasLength = false
  let cookies = ''
  for (const [name, value] of of.headers) {
    const lower = LENGTHS.has(name.length) ? name.toLowerCase() : ''
    if (lower === 'content-length') hasLength = true
    // HTTP/2 may send it in pieces (RFC 9113 §8.2.3).
    if (lower === 'cookie') cookies += `${cookies === '' ? '' : '; '}${value}`
    // `te` of HTTP/2 is about its own connection.
    else if (lower !== 'te') headers.push(name, value)
  }
  if (cookies !== '') headers.push('Cookie', cookies)
  if (of.hasBody && !hasLength) headers.push('Transfer-Encoding', 'chunked')
  if (!of.hasBody && !hasLength && WITH_BODY.test(of.method)) headers.push('Content-Length', '0')
  const outgoing = request({
    ...{ agent, method: of.method, path: of.target, headers, setHost: false },
    ...{ maxHeaderSize: MAX_HEADER_BYTES, insecureHTTPParser: false },
  })
  let isOver = false
  const fail = (failure: Failure) => {
    if (isOver) return
    isOver = true
    on.onBroken(failure)
  }
  outgoing.on('error', (error) => fail(failureOf(error, 'broken')))
  outgoing.on('continue', () => on.onContinue())
  outgoing.on('information', ({ statusCode, rawHeaders }) => {
    if (statusCode !== 100) on.onInform(statusCode, rawHeaders)
  })
  outgoing.on('upgrade', (_reply, socket) => {
    reset(socket)
    fail(new Failure('broken'))
  })
  outgoing.on('response', (incoming) => {
    if (!isReadable(incoming)) {
      outgoing.destroy()
      return fail(new Failure('broken'))
    }
    incoming.on('error', () => fail(new Failure('broken')))
    incoming.on('close', () => {
      if (!incoming.complete) fail(new Failure('broken'))
      isOver = true
    })
    on.onReply({
      status: incoming.statusCode ?? 0,
      headers: incoming.rawHeaders,
      body: incoming,
      isOver: false,
      trailers: () => incoming.rawTrailers,
    })
  })
  // From then on the connection may be somebody else's.
  let isFreed = false
  outgoing.once('close', () => {
    isFreed = true
  })
  if (!of.hasBody) outgoing.end()
  return {
    body: outgoing,
    sendTrailers: (trailers) => outgoing.addTrailers(pairsOf(trailers)),
    break: () => {
      isOver = true
      if (isFreed) return
      if (outgoing.socket) reset(outgoing.socket)
      outgoing.destroy()
    },
  }
}

/** Node takes off chunks only: a body in another transfer coding would pass for one without. */
function isReadable({ statusCode = 0, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']
  return statusCode >= 200 && statusCode <= 599 && (coding === undefined || /^chunked$/i.test(coding))
}
