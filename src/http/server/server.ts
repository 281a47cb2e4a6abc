import { createServer as createNodeServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { SecureContextOptions, Server as TlsServer } from 'node:tls'
import {
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  type HookHandlerDoneFunction,
  LogController,
  type RouteOptions,
} from 'fastify'
import {
  longestRequest,
  MAX_BODY_BYTES,
  MAX_HEADER_BYTES,
  MAX_HEADERS,
  UPSTREAM_TIMEOUT_MS,
} from '../../domain/limits.ts'
import { installJsonBodies } from './bodies.ts'
import { createClientErrorHandler } from './client-errors.ts'
import { shareConnections } from './connection-share.ts'
import { createFrameworkErrorHandler, type HttpLog, installErrorHandlers, sendNotFound } from './errors.ts'
import { findFault } from './request-rules.ts'
import { createUnreadReplies, type UnreadLimits, type UnreadReplies } from './unread-replies.ts'
import { compileSerializer, createValidatorCompiler } from './validation.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `Cache-Control` of this route's successful replies; `no-store` if absent. */
    cacheControl?: string
  }
}

/** Milliseconds. Only `connection` depends on a setting; tests shorten the others. */
export interface HttpTimeouts {
  /** The whole request, body included. */
  request: number
  headers: number
  /** A connection without traffic, also while its request is being carried out. */
  connection: number
  keepAlive: number
  /** Interval at which the first two are checked. */
  check: number
}

const TIMEOUTS: HttpTimeouts = {
  request: 10_000,
  headers: 5_000,
  connection: longestRequest(UPSTREAM_TIMEOUT_MS),
  keepAlive: 10_000,
  check: 1_000,
}

/** Further connections are closed at once. */
const MAX_CONNECTIONS = 4_096
/** Requests on one connection, which is closed after the last one. */
const MAX_REQUESTS_PER_SOCKET = 10_000
const MAX_PARAM_LENGTH = 256
/** Interval in ms at which a closing server closes idle connections. */
const DRAIN_MS = 50

export interface HttpServerOptions {
  log: HttpLog
  /** PEM; HTTPS only when given. */
  tls?: Pick<SecureContextOptions, 'key' | 'cert' | 'ca' | 'passphrase'>
  /** Networks whose `X-Forwarded-For` names the client's address; never used for authorization. */
  trustedProxies?: readonly string[]
  maxConnections?: number
  timeouts?: Partial<HttpTimeouts>
  unread?: Partial<UnreadLimits>
  newRequestId(): string
}

export type HttpServer = FastifyInstance

const TLS = { minVersion: 'TLSv1.2' } as const

/** New connections of a server with TLS get this certificate; those that are open keep theirs. */
export function replaceCertificate(server: HttpServer, tls: NonNullable<HttpServerOptions['tls']>): void {
  const { server: listener } = server as unknown as { readonly server: TlsServer }
  listener.setSecureContext({ ...tls, ...TLS })
}

/** Creates a server with every limit of the threat model, our error shapes and no routes. `listen` starts it. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const server = fastify(frameworkOptions(options, timeouts)) as HttpServer
  limitListener(server.server, options)
  // No answer is possible before the handshake: writing one would keep the connection open for ever.
  server.server.prependListener('tlsClientError', (_error, socket: Socket) => socket.destroy())
  server.setValidatorCompiler(createValidatorCompiler())
  server.setSerializerCompiler(compileSerializer)
  installJsonBodies(server)
  installErrorHandlers(server, { log: options.log })
  const unread = createUnreadReplies(options.unread)
  unread.watch(server.server)
  installRequestRules(server, unread)
  drainWhenClosing(server, server.server)
  return server
}

/**
 * Creates a second listener for the routes of `server`, without TLS and under the same limits, for a unix socket. Call
 * it before `server` is ready; `server` closes it together with itself.
 */
export function createSecondListener(server: HttpServer, options: HttpServerOptions): Server {
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const second = createNodeServer(nodeOptions(timeouts), (request, response) =>
    server.routing(request, response),
  )
  second.setTimeout(timeouts.connection)
  second.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET
  second.on('clientError', createClientErrorHandler(options))
  limitListener(second, options)
  drainWhenClosing(server, second)
  const closed = new Promise<void>((resolve) => second.once('close', resolve))
  server.addHook('preClose', (done) => {
    second.close()
    done()
  })
  server.addHook('onClose', () => closed)
  return second
}

/** Limits for which Node has no options. */
function limitListener(listener: Server, options: HttpServerOptions): void {
  // One more than allowed, so that the rule sees the excess while Node drops the rest.
  listener.maxHeadersCount = MAX_HEADERS + 1
  listener.maxConnections = options.maxConnections ?? MAX_CONNECTIONS
  shareConnections(listener, { proxies: options.trustedProxies ?? [] })
  // Without a listener Node answers 417 with an empty body; `findFault` refuses it in our shape.
  listener.on('checkExpectation', (request, response) => {
    listener.emit('request', request, response)
  })
}

function nodeOptions(timeouts: HttpTimeouts) {
  return {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    keepAliveTimeout: timeouts.keepAlive,
    connectionsCheckingInterval: timeouts.check,
    insecureHTTPParser: false,
    noDelay: true,
    // Node's own answer has no body; `findFault` checks `Host` instead.
    requireHostHeader: false,
  }
}

function frameworkOptions(options: HttpServerOptions, timeouts: HttpTimeouts): FastifyHttpOptions<Server> {
  const shared = {
    logger: false,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: timeouts.request,
    connectionTimeout: timeouts.connection,
    keepAliveTimeout: timeouts.keepAlive,
    maxRequestsPerSocket: MAX_REQUESTS_PER_SOCKET,
    forceCloseConnections: 'idle',
    // A request that arrives while closing is served; then its connection is closed.
    return503OnClosing: false,
    requestIdHeader: false,
    genReqId: () => options.newRequestId(),
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    routerOptions: {
      maxParamLength: MAX_PARAM_LENGTH,
      caseSensitive: true,
      ignoreTrailingSlash: false,
      ignoreDuplicateSlashes: false,
    },
    frameworkErrors: createFrameworkErrorHandler(options.log),
    clientErrorHandler: createClientErrorHandler(options),
  } as const
  if (options.tls === undefined) return { ...shared, http: nodeOptions(timeouts) }
  // The framework has another type for HTTPS; routes and replies are the same.
  const https = {
    ...nodeOptions(timeouts),
    ...options.tls,
    ...TLS,
    // The default is two minutes, and the other limits start after the handshake.
    handshakeTimeout: timeouts.headers,
  }
  return { ...shared, https } as unknown as FastifyHttpOptions<Server>
}

/** The one hook of every request: standard headers and the rules of `findFault`. Synchronous and cheap. */
function installRequestRules(server: FastifyInstance, unread: UnreadReplies): void {
  server.addHook(
    'onRequest',
    (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => {
      reply.header('x-request-id', request.id)
      reply.header('cache-control', 'no-store')
      reply.header('x-content-type-options', 'nosniff')
      const fault = findFault(request.raw) ?? unread.refuse(request, reply)
      if (fault !== undefined) done(fault)
      // Answer an unknown address before reading the body.
      else if (request.is404) sendNotFound(server, request, reply)
      else done()
    },
  )
  server.addHook('onRoute', (route: RouteOptions) => {
    const { cacheControl } = route.config ?? {}
    if (cacheControl === undefined) return
    const own = route.onRequest === undefined ? [] : [route.onRequest].flat()
    route.onRequest = [
      (_request, reply, done) => {
        reply.header('cache-control', cacheControl)
        done()
      },
      ...own,
    ]
  })
}

/**
 * Node closes idle connections only once, at the start of closing, and never those that have sent nothing (browsers
 * open such connections in advance). Both would delay the end until their timeouts.
 */
function drainWhenClosing(server: FastifyInstance, listener: Server): void {
  const connections = new Set<Socket>()
  listener.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  const drain = () => {
    listener.closeIdleConnections()
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  }
  server.addHook('preClose', (done) => {
    const timer = setInterval(drain, DRAIN_MS)
    listener.once('close', () => clearInterval(timer))
    done()
  })
}
