import type { IncomingMessage, ServerResponse } from 'node:http'
import { reset } from '../../sockets.ts'
import { pairsOf } from '../flat.ts'
import type { Inbound } from './inbound.ts'

export function readHttp1(request: IncomingMessage, response: ServerResponse): Inbound {
  const { 'content-length': length, 'transfer-encoding': coding, expect } = request.headers
  // An upstream's date, or none.
  response.sendDate = false
  request.on('error', () => undefined)
  response.on('error', () => undefined)
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers: pairsOf(request.rawHeaders),
    http2: undefined,
    body: request,
    hasBody: coding !== undefined || (length !== undefined && length !== '0'),
    expectsContinue: expect !== undefined && request.httpVersion === '1.1',
    get isAnswered() {
      return response.headersSent
    },
    trailers: () => request.rawTrailers,
    sendContinue: () => {
      if (!response.headersSent) response.writeContinue()
    },
    inform: (status, flat) => {
      if (status === 103 && !response.headersSent && request.httpVersion === '1.1') writeHints(response, flat)
    },
    respond: (status, flat, isOver) => {
      response.writeHead(status, flat as string[])
      if (isOver) response.end()
      return response
    },
    sendTrailers: (flat) => response.addTrailers(pairsOf(flat)),
    break: () => {
      if (response.writableFinished) return
      reset(request.socket)
    },
    onClose: (listener) => {
      response.once('close', () => listener(response.writableFinished))
    },
  }
}

/** Early hints (RFC 8297), as far as Node writes them: links only, and others beside them. */
function writeHints(response: ServerResponse, flat: readonly string[]): void {
  const link: string[] = []
  const others: Record<string, string> = {}
  for (const [name, value] of pairsOf(flat)) {
    const lower = name.toLowerCase()
    if (lower === 'link') link.push(value)
    else others[lower] = value
  }
  try {
    if (link.length > 0) response.writeEarlyHints({ ...others, link })
  } catch {
    // A form of link that Node does not write: hints are only hints.
  }
}
