import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type Reason, refusalBody, refusalOf } from '../rules/refusals.ts'
import { pairsOf } from './flat.ts'
import type { Inbound } from './inbound/inbound.ts'

/** A body of a refused request that is read to its end, so that the connection can stay. */
const SMALL_BYTES = 64 * 1024
/** How long a client may go on to send what nobody wants, before its connection breaks. */
const LINGER_MS = 2_000

export interface OwnReply {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: string
}

/** `asXml`: as S3 answers, whose clients read nothing else. */
export function ownReply(reason: Reason, asXml = false): OwnReply {
  const { status, code, message } = refusalOf(reason)
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`
  const [type, body] = asXml ? ['application/xml', xml] : ['application/json', refusalBody(reason)]
  const length = String(Buffer.byteLength(body))
  const headers = ['Content-Type', type, 'Content-Length', length, 'Cache-Control', 'no-store']
  if (status === 407) headers.push('Proxy-Authenticate', 'Basic realm="mayfly"', 'Connection', 'close')
  // The upstream was not asked, or not heard.
  headers.push('X-Mayfly-Proxy', status >= 500 ? 'failed' : 'refused')
  return { status, headers, body }
}

/** In `Authorization`, or in the query of a presigned URL. */
const SIGNED_FOR_S3 = /^AWS4-HMAC-SHA256 +Credential=[\w/-]+\/s3\/aws4_request,/
const PRESIGNED_FOR_S3 = /[?&]X-Amz-Credential=[\w%/-]+(?:%2F|\/)s3(?:%2F|\/)aws4_request(?:&|$)/i

function isForS3({ headers, target }: Inbound): boolean {
  if (PRESIGNED_FOR_S3.test(target)) return true
  return headers.some(([name, value]) => name.toLowerCase() === 'authorization' && SIGNED_FOR_S3.test(value))
}

/** Replies in the proxy's own name. The rest of a body is not read for long. Returns the status. */
export function refuse(inbound: Inbound, reason: Reason): number {
  const { status, headers, body } = ownReply(reason, isForS3(inbound))
  const isHttp1 = inbound.http2 === undefined
  // Whether a client sends the body that it asked about is not known: what follows could be either.
  const lingers = inbound.hasBody && (inbound.expectsContinue || !isSmall(inbound))
  const flat = isHttp1 ? headers : headers.filter((_, at) => !isConnection(headers, at))
  const isHead = inbound.method === 'HEAD'
  // Of what two programs read in two ways, nothing after it is read.
  const closes = lingers || reason === 'bad_framing'
  const out = inbound.respond(status, isHttp1 && closes ? [...flat, 'Connection', 'close'] : flat, isHead)
  if (isHead) return status
  if (inbound.hasBody) inbound.body.resume()
  if (!lingers) {
    out.end(body)
    return status
  }
  // To close while the client still sends would reset the connection before it has read this.
  out.write(body)
  const end = () => {
    clearTimeout(timer)
    out.end()
  }
  const timer = setTimeout(end, LINGER_MS)
  inbound.body.once('end', end)
  inbound.body.once('close', end)
  return status
}

function isSmall(inbound: Inbound): boolean {
  const length = inbound.headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  return length !== undefined && Number(length) <= SMALL_BYTES
}

function isConnection(headers: readonly string[], at: number): boolean {
  return headers[at - (at % 2)] === 'Connection'
}

/** In HTTP/1.1, on a socket of which nobody reads requests; it ends. */
export function answerBare(socket: Socket, reason: Reason, lingerMs = LINGER_MS): void {
  const { status, headers, body } = ownReply(reason)
  // Of a refused CONNECT, many clients show this line and nothing else.
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status]} (mayfly: ${refusalOf(reason).code})`]
  if (status !== 407) lines.push('Connection: close')
  for (const [name, value] of pairsOf(headers)) lines.push(`${name}: ${value}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
  socket.resume()
  // Whatever it still sends: who is turned away keeps no connection.
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}
