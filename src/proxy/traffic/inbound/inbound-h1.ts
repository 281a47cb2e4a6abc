import type { IncomingMessage, ServerResponse } from 'node:http'
import { reset } from '../sockets.ts'
import type { Inbound } from './inbound.ts'

export function readHttp1(request: IncomingMessage, response: ServerResponse): Inbound {
  const { rawHeaders } = request
  const headers: [string, string][] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? ''])
  const { 'content-length': length, 'transfer-encoding': coding, expect } = request.headers
  // An upstream's date, or none.
  response.sendDate = false
  request.on('error', () => undefined)
  response.on('error', () => undefined)
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers,
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
    sendTrailers: (flat) => {
      const pairs = Array.from({ length: flat.length / 2 }, (_, at): [string, string] => [
        flat[2 * at] ?? '',
        flat[2 * at + 1] ?? '',
      ])
      response.addTrailers(pairs)
    },
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
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = (flat[at] ?? '').toLowerCase()
    if (name === 'link') link.push(flat[at + 1] ?? '')
    else others[name] = flat[at + 1] ?? ''
  }
  try {
    if (link.length > 0) response.writeEarlyHints({ ...others, link })
  } catch {
    // A form of link that Node does not write: hints are only hints.
  }
}
