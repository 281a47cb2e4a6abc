import { createServer as createHttp1, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import {
  constants,
  createServer as createHttp2,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Context } from './context.ts'
import type { Inbound, Way } from './inbound/inbound.ts'
import { readHttp1 } from './inbound/inbound-h1.ts'
import { readStream } from './inbound/inbound-h2.ts'
import { beginLine } from './line.ts'
import { ownReply } from './own-reply.ts'
import { ignoreErrors } from './sockets.ts'
import type { Socketed } from './upgrade.ts'
import { MAX_HEADER_BYTES } from './upstream/outbound-h1.ts'

/** What reads requests from connections that somebody else accepted. */
export interface Servers {
  /** `protocol`: as TLS agreed. */
  take(socket: Socket, way: Way, protocol: 'h2' | 'http/1.1'): void
  close(): void
}

export type OnRequest = (inbound: Inbound, way: Way, socketed?: Socketed) => void

const HEADERS_MS = 10_000
const KEEP_ALIVE_MS = 65_000
const CHECK_MS = 1_000
/** Node drops what is over the count, without a word: the bytes bound it. */
const UNCOUNTED = 0
const UPGRADES = /^(websocket|spdy\/3\.1)$/i

/** Idle connections have `KEEP_ALIVE_MS`; a request may take any time, its head `HEADERS_MS`. */
export function http1Options() {
  return {
    ...{ maxHeaderSize: MAX_HEADER_BYTES, insecureHTTPParser: false, requireHostHeader: false },
    ...{ headersTimeout: HEADERS_MS, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS },
    ...{ connectionsCheckingInterval: CHECK_MS, highWaterMark: 64 * 1024 },
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => UPGRADES.test(headers.upgrade ?? ''),
  }
}

export function createServers(ctx: Context, onRequest: OnRequest): Servers {
  const ways = new WeakMap<object, Way>()
  const http1 = createHttp1(http1Options())
  http1.maxHeadersCount = UNCOUNTED
  watchTimes(http1)
  const wayOf = (socket: object): Way =>
    ways.get(socket) ?? { authority: '', scheme: 'https', refused: 'wrong_host' }
  const take1 = (request: IncomingMessage, response: ServerResponse) =>
    onRequest(readHttp1(request, response), wayOf(request.socket))
  http1.on('request', take1)
  // Whether to go on is the upstream's to say.
  http1.on('checkContinue', take1)
  http1.on('checkExpectation', take1)
  http1.on('upgrade', (request, socket: Socket, head) => {
    onRequest(readUpgrade(request, socket), wayOf(socket), { socket, head })
  })
  http1.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    answerUnreadable(ctx, error.code, socket, wayOf(socket).authority)
  })
  const http2 = createHttp2Server(ctx, onRequest)
  return {
    take(socket, way, protocol) {
      ignoreErrors(socket)
      if (protocol === 'h2') http2.take(socket, way)
      else {
        ways.set(socket, way)
        http1.emit('connection', socket)
      }
    },
    close() {
      http1.close()
      http2.close()
    },
  }
}

/** Node begins to look for slow clients when a server listens, which this one never does. */
export function watchTimes(server: Server): void {
  server.emit('listening')
}

/** The socket of an upgrade is no longer the server's: its reply ends the connection. */
export function readUpgrade(request: IncomingMessage, socket: Socket): Inbound {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.end())
  // Nobody detaches it at the end.
  socket.once('close', () => response.emit('close'))
  return readHttp1(request, response)
}

/** Of HTTP/1.1: what cannot be read is answered once, and the connection ends. */
export function answerUnreadable(
  ctx: Pick<Context, 'recorder' | 'now'>,
  code: string | undefined,
  socket: Socket,
  authority: string,
): void {
  if (socket.destroyed || !socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
    socket.destroy()
    return
  }
  const line = beginLine(ctx, { method: null, authority })
  line.reason = 'bad_framing'
  line.status = 400
  line.end()
  const { headers, body } = ownReply('bad_framing')
  const lines = ['HTTP/1.1 400 Bad Request', 'Connection: close']
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
  // A hard limit: who sends a byte now and then keeps no connection by it.
  const timer = setTimeout(() => socket.destroy(), CHECK_MS)
  socket.once('close', () => clearTimeout(timer))
}

const WINDOW_BYTES = 256 * 1024
const MOST_STREAMS = 256

function createHttp2Server(ctx: Context, onRequest: OnRequest) {
  const server: Http2Server = createHttp2({
    settings: {
      enablePush: false,
      initialWindowSize: WINDOW_BYTES,
      maxConcurrentStreams: MOST_STREAMS,
      maxHeaderListSize: MAX_HEADER_BYTES,
    },
    maxSessionMemory: 128,
    maxHeaderListPairs: 256,
  })
  const sessions = new Map<ServerHttp2Session, Way>()
  let opening: Way | undefined
  server.on('session', (session) => {
    if (opening === undefined) return session.destroy()
    sessions.set(session, opening)
    ignoreErrors(session)
    session.once('close', () => sessions.delete(session))
    session.setTimeout(KEEP_ALIVE_MS, () => {
      // Streams have a time of their own.
      if (streamsOf.get(session) === undefined) session.close()
    })
    // Room for all streams: none that an upstream takes slowly holds up another.
    session.once('remoteSettings', () => {
      if (!session.destroyed) session.setLocalWindowSize(MOST_STREAMS * WINDOW_BYTES)
    })
  })
  const streamsOf = new WeakMap<ServerHttp2Session, number>()
  const listener = (
    stream: ServerHttp2Stream,
    _headers: IncomingHttpHeaders,
    flags: number,
    raw: string[],
  ) => {
    const session = stream.session as ServerHttp2Session | undefined
    const way = session && sessions.get(session)
    const inbound = readStream(stream, flags, raw)
    ignoreErrors(stream)
    if (session === undefined || way === undefined) return stream.close(constants.NGHTTP2_CANCEL)
    if (inbound === null) {
      const line = beginLine(ctx, { method: null, authority: way.authority })
      line.reason = 'bad_framing'
      line.end()
      return stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
    }
    const under = (streamsOf.get(session) ?? 0) + 1
    streamsOf.set(session, under)
    stream.once('close', () => {
      const left = (streamsOf.get(session) ?? 1) - 1
      if (left === 0) streamsOf.delete(session)
      else streamsOf.set(session, left)
    })
    onRequest(inbound, way)
  }
  server.on('stream', listener as never)
  server.on('sessionError', () => undefined)
  return {
    take(socket: Socket, way: Way) {
      opening = way
      server.emit('connection', socket)
      opening = undefined
    },
    close() {
      for (const session of sessions.keys()) session.destroy()
    },
  }
}
