import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { MAX_URL_BYTES } from '../../domain/limits.ts'
import { PROBLEMS, type ProblemCode } from '../../domain/problems.ts'
import { errorBody, type HttpLog, JSON_TYPE } from './errors.ts'

/** An error of Node's parser; `rawPacket` is the input at which it stopped. */
interface ParserError extends Error {
  code?: string | undefined
  rawPacket?: unknown
}

interface Answer {
  status: number
  code: ProblemCode
  message: string
}

function answerFor(error: ParserError): Answer {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, code: 'invalid_request', message: 'The request did not arrive in time.' }
    case 'HPE_HEADER_OVERFLOW': {
      const code = startsWithLongLine(error.rawPacket) ? 'uri_too_long' : 'headers_too_large'
      return { code, status: PROBLEMS[code].status, message: PROBLEMS[code].message }
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { code: 'payload_too_large', status: 413, message: PROBLEMS.payload_too_large.message }
    default:
      return { status: 400, code: 'invalid_request', message: 'This is not a valid HTTP/1.1 request.' }
  }
}

/** Node counts the request line as a header: an endless address looks like endless headers. */
function startsWithLongLine(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet) || !/^[A-Z]+ \//.test(packet.toString('latin1', 0, 16))) return false
  const end = packet.indexOf('\n')
  return end === -1 ? packet.length > MAX_URL_BYTES : end > MAX_URL_BYTES
}

function writeAnswer(socket: Socket, answer: Answer, requestId: string): void {
  const body = errorBody(answer, requestId)
  socket.end(
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n` +
      `Content-Type: ${JSON_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: ${requestId}\r\n` +
      `Date: ${new Date().toUTCString()}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  )
}

/**
 * Answers input that never became a request, and closes. A pending reply to an earlier request of the connection goes
 * first: the client would take our answer for that reply.
 */
export function createClientErrorHandler(options: {
  log: HttpLog
  newRequestId(): string
}): (error: ParserError, socket: Socket) => void {
  const handled = new WeakSet<Socket>()
  return (error, socket) => {
    if (handled.has(socket)) return
    handled.add(socket)
    if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
      socket.destroy()
      return
    }
    // Node keeps the reply in progress here and uses it in its own handler; it has no public name.
    const reply = Reflect.get(socket, '_httpMessage') as ServerResponse | null | undefined
    if (reply?.req.complete === true) {
      reply.once('close', () => socket.destroySoon())
      return
    }
    if (reply?.headersSent === true) {
      socket.destroy()
      return
    }
    const requestId = options.newRequestId()
    const answer = answerFor(error)
    options.log.debug({ request_id: requestId, code: error.code, status: answer.status }, 'malformed request')
    writeAnswer(socket, answer, requestId)
  }
}
