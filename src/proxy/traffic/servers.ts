import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { ignoreErrors } from '../sockets.ts'
import type { Context } from './context.ts'
import { AS_RECEIVED } from './flat.ts'
import { createHttp1Server, KEEP_ALIVE_MS } from './http1-server.ts'
import type { Inbound, Way } from './inbound/inbound.ts'
import { readStream } from './inbound/inbound-h2.ts'
import { beginLine } from './line.ts'
import type { Socketed } from './upgrade.ts'
import { MAX_HEADER_BYTES } from './upstream/outbound-h1.ts'

/** What reads requests from connections that somebody else accepted. */
export interface Servers {
  /** `protocol`: as TLS agreed. */
  take(socket: Socket, way: Way, protocol: 'h2' | 'http/1.1'): void
  close(): void
}

export type OnRequest = (inbound: Inbound, way: Way, socketed?: Socketed) => void

export function createServers(ctx: Context, onRequest: OnRequest): Servers {
  const ways = new WeakMap<object, Way>()
  const wayOf = (socket: object): Way =>
    ways.get(socket) ?? { authority: '', scheme: 'https', refused: 'wrong_host' }
  const http1 = createHttp1Server(ctx, {
    onRequest: (inbound, { socket }, socketed) => onRequest(inbound, wayOf(socket), socketed),
    authorityOf: (socket) => wayOf(socket).authority,
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

const WINDOW_BYTES = 256 * 1024
const MOST_STREAMS = 256

function createHttp2Server(ctx: Context, onRequest: OnRequest) {
  const server: Http2Server = createServer({
    settings: {
      enablePush: false,
      initialWindowSize: WINDOW_BYTES,
      maxConcurrentStreams: MOST_STREAMS,
      maxHeaderListSize: MAX_HEADER_BYTES,
    },
    maxSessionMemory: 128,
    maxHeaderListPairs: 256,
    ...AS_RECEIVED,
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
