import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Context } from './context.ts'
import type { Inbound } from './inbound/inbound.ts'
import { readHttp1 } from './inbound/inbound-h1.ts'
import { beginLine } from './line.ts'
import { answerBare } from './own-reply.ts'
import type { Socketed } from './upgrade.ts'
import { MAX_HEADER_BYTES } from './upstream/outbound-h1.ts'

interface Http1Events {
  onRequest(inbound: Inbound, request: IncomingMessage, socketed?: Socketed): void
  /** For the record of what cannot be read. */
  authorityOf(socket: Socket): string
}

const HEADERS_MS = 10_000
/** For connections without a request. */
export const KEEP_ALIVE_MS = 65_000
const CHECK_MS = 1_000
/** Node drops what is over the count, without a word: the bytes bound it. */
const UNCOUNTED = 0
const UPGRADES = /^(websocket|spdy\/3\.1)$/i

/** Reads requests from connections that somebody else accepted. A request may take any time, its head `HEADERS_MS`. */
export function createHttp1Server(ctx: Context, { onRequest, authorityOf }: Http1Events): Server {
  const server = createServer({
    ...{ maxHeaderSize: MAX_HEADER_BYTES, insecureHTTPParser: false, requireHostHeader: false },
    ...{ headersTimeout: HEADERS_MS, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS },
    ...{ connectionsCheckingInterval: CHECK_MS, highWaterMark: 64 * 1024 },
    shouldUpgradeCallback: ({ headers }: IncomingMessage) => UPGRADES.test(headers.upgrade ?? ''),
  })
  server.maxHeadersCount = UNCOUNTED
  // Node begins to look for slow clients when a server listens, which this one never does.
  server.emit('listening')
  const take = (request: IncomingMessage, response: ServerResponse) =>
    onRequest(readHttp1(request, response), request)
  server.on('request', take)
  // Whether to go on is the upstream's to say.
  server.on('checkContinue', take)
  server.on('checkExpectation', take)
  server.on('upgrade', (request, socket: Socket, head) => {
    onRequest(readUpgrade(request, socket), request, { socket, head })
  })
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    answerUnreadable(ctx, error.code, socket, authorityOf(socket))
  })
  return server
}

/** The socket of an upgrade is no longer the server's: its reply ends the connection. */
function readUpgrade(request: IncomingMessage, socket: Socket): Inbound {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.end())
  // Nobody detaches it at the end.
  socket.once('close', () => response.emit('close'))
  return readHttp1(request, response)
}

/** What cannot be read is answered once, and the connection ends. */
function answerUnreadable(ctx: Context, code: string | undefined, socket: Socket, authority: string): void {
  if (socket.destroyed || !socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
    socket.destroy()
    return
  }
  const line = beginLine(ctx, { method: null, authority })
  line.reason = 'bad_framing'
  line.status = 400
  line.end()
  answerBare(socket, 'bad_framing', CHECK_MS)
}
