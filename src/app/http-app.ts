import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/config.ts'
import type { Core } from '../core/context.ts'
import { ConfigError } from '../domain/fault.ts'
import { longestRequest } from '../domain/limits.ts'
import { isLoopbackHost } from '../domain/network/loopback.ts'
import { createPeerUids } from '../egress/peer-uid.ts'
import { addAllRoutes } from '../http/routes/add-all-routes.ts'
import { createGate } from '../http/routing/gate.ts'
import { createReplyBatch } from '../http/routing/reply-batch.ts'
import { checkRoutes } from '../http/routing/route.ts'
import { createLocalHostRule } from '../http/server/local-host.ts'
import {
  createHttpServer,
  createSecondListener,
  type HttpServer,
  type HttpServerOptions,
  replaceCertificate,
} from '../http/server/server.ts'
import { installation } from '../installation.ts'
import type { Log } from '../log/log.ts'
import { warnOfGrowth } from './growth.ts'
import { listenOnAdminSocket, listenOnPort, readTls } from './listen.ts'
import type { Metrics } from './metrics.ts'
import { needsRestart, type Reload, type Reloadable } from './reload.ts'
import type { Traces } from './traces/traces.ts'

/** The HTTP side of the server: routes and listeners. */
export interface HttpApp {
  readonly server: HttpServer
  /** Listens on the port and on the administrators' socket. Returns the base address. */
  listen(): Promise<string>
  /** Accepts no new connections; open requests finish. */
  drain(): Promise<void>
  close(): Promise<void>
  readonly reload: Reloadable
  /** The PEM of the certificate that is shown, with its chain. */
  certificate(): Buffer | undefined
}

export async function openHttpApp(
  config: Config,
  core: Core,
  {
    metrics,
    traces,
    log,
    reload,
  }: { metrics: Metrics; traces: Traces | undefined; log: Log; reload: Reload },
): Promise<HttpApp> {
  warnOfGrowth(config, log)
  const fromUnix = new WeakSet<object>()
  const options: HttpServerOptions = {
    log,
    newRequestId: () => core.ids.id('request'),
    trustedProxies: config.trustedProxies,
    maxConnections: config.maxConnections,
    // A shorter one would cut the connection of a request that waits for its upstream.
    timeouts: { connection: longestRequest(config.upstreamTimeoutMs) },
    ...(config.tls === undefined ? {} : { tls: readTls(config.tls) }),
  }
  const server = createHttpServer(options)
  const adminSocket = createSecondListener(server, options)
  adminSocket.on('connection', (connection) => fromUnix.add(connection))
  server.decorateRequest('actor', undefined)
  server.decorateRequest('admittedWhole', false)
  metrics.http.watch(server)
  traces?.watch(server)
  const registered = new Set<string>()
  server.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) if (one !== 'HEAD') registered.add(`${one} ${url}`)
  })
  const localHost = createLocalHostRule({
    mode: config.localAdmin,
    port: () => portOf(server.server) ?? config.listen.port,
    issuerIsLoopback: isLoopbackHost(new URL(config.issuer).hostname),
    trustedProxies: config.trustedProxies.length > 0,
    platform: process.platform,
    peerUid: createPeerUids(),
    serverUid: process.getuid?.() ?? -1,
    tls: config.tls !== undefined,
  })
  const gate = createGate({ core, localHost, isUnixSocket: (socket) => fromUnix.has(socket) })
  addAllRoutes(
    { server, core, gate, replies: createReplyBatch() },
    { metrics, issueByGet: config.issueByGet, reload, consoleFiles: installation.consoleFiles },
  )
  if (config.accessLog) logRequests(server, log)
  // They have no end of their own, and the server closes when all replies have.
  server.addHook('preClose', async () => {
    await core.feed.close()
    await core.followedRuns.close()
  })
  await server.ready()
  checkRoutes(registered)
  return listeners(config, server, adminSocket)
}

function listeners(config: Config, server: HttpServer, adminSocket: Server): HttpApp {
  let closing: Promise<void> | undefined
  let removeSocket = () => {}
  const drain = () => {
    removeSocket()
    closing ??= server.close()
    return closing
  }
  return {
    server,
    listen: async () => {
      mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
      const address = await listenOnPort(server, config)
      removeSocket = await listenOnAdminSocket(adminSocket, config.dataDir)
      return address
    },
    drain,
    close: drain,
    ...reloadListeners(config, server, adminSocket),
  }
}

/** The certificate, and how many connections there may be. */
function reloadListeners(
  { tls: before }: Config,
  server: HttpServer,
  adminSocket: Server,
): Pick<HttpApp, 'reload' | 'certificate'> {
  let shown = before && readTls(before)
  const reload: Reloadable = async ({ tls, maxConnections }) => {
    if ((tls === undefined) !== (before === undefined))
      throw new ConfigError([needsRestart('tls_cert_file', 'whether the server uses TLS')])
    const next = tls && readTls(tls)
    const isNew = next !== undefined && !isDeepStrictEqual(next, shown)
    return {
      changed: isNew ? ['tls_cert_file', 'tls_key_file'] : [],
      apply: () => {
        if (isNew) replaceCertificate(server, next)
        shown = next
        for (const listener of [server.server, adminSocket]) listener.maxConnections = maxConnections
      },
    }
  }
  return { reload, certificate: () => shown?.cert }
}

function portOf(server: Server): number | undefined {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : undefined
}

function logRequests(server: HttpServer, log: Log): void {
  server.addHook('onResponse', (request, reply, done) => {
    const fields = {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime),
    }
    log.info(fields, 'request')
    done()
  })
}
