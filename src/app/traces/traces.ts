import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import type { Backend, Host, Kind } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { Trace } from '../../domain/trace.ts'
import type { HttpServer } from '../../http/server/server.ts'
import type { Store } from '../../store/open.ts'
import { createExporter, type Exporter, type ExporterParts, type Span } from './otlp.ts'

/** Spans of requests, commits, calls of upstreams and sweeps. */
export interface Traces {
  readonly trace: Trace
  readonly exporter: Exporter
  /** The store, each of whose commits is a span. */
  store(store: Store): Store
  /** The kind, each of whose calls is a span. The same kind gives the same one. */
  kind(kind: Kind): Kind
  /** Passes the trace on (W3C Trace Context). */
  fetch(fetch: Host['fetch']): Host['fetch']
  /** Before the routes are added. */
  watch(server: HttpServer): void
  close(): Promise<void>
}

/** What the work that runs now is a part of. */
interface Current {
  readonly traceId: string
  readonly spanId: string
  /** False: who sent the request does not record its trace. */
  readonly isSampled: boolean
}

interface Begun extends Current {
  readonly parentId: string | undefined
  readonly begunAt: bigint
}

declare module 'fastify' {
  interface FastifyRequest {
    span: Begun | undefined
  }
}

const CALLS = ['check', 'issue', 'revoke', 'list', 'keepUp', 'retire'] as const

export function createTraces(parts: Omit<ExporterParts, 'url'> & { readonly endpoint: string }): Traces {
  const exporter = createExporter({ ...parts, url: `${parts.endpoint.replace(/\/$/, '')}/v1/traces` })
  const current = new AsyncLocalStorage<Current>()

  function end(span: Begun, rest: Pick<Span, 'name' | 'kind' | 'attributes' | 'isError'>): void {
    if (span.isSampled) exporter.add({ ...span, endedAt: nowNs(), ...rest })
  }

  async function within<T>(
    what: Pick<Span, 'name' | 'kind' | 'attributes'>,
    work: () => Promise<T>,
  ): Promise<T> {
    const span = begin(current.getStore())
    try {
      const result = await current.run(span, work)
      end(span, { ...what, isError: false })
      return result
    } catch (error) {
      const fault = error instanceof BackendError ? { 'error.type': error.reason ?? error.fault } : {}
      end(span, { ...what, attributes: { ...what.attributes, ...fault }, isError: true })
      throw error
    }
  }

  const kinds = new WeakMap<Kind, Kind>()
  return {
    trace: (name, attributes, work) => within({ name, kind: 'internal', attributes }, work),
    exporter,
    store: (store) => ({
      ...store,
      commit: (change, options) =>
        within({ name: 'commit', kind: 'internal', attributes: { 'db.system.name': store.dialect } }, () =>
          store.commit(change, options),
        ),
    }),
    kind(kind) {
      const known = kinds.get(kind) ?? tracedKind(kind, within)
      kinds.set(kind, known)
      return known
    },
    fetch: (fetch) => (url, init, options) => {
      const span = current.getStore()
      if (span === undefined) return fetch(url, init, options)
      const headers = new Headers(init?.headers)
      headers.set('traceparent', `00-${span.traceId}-${span.spanId}-${span.isSampled ? '01' : '00'}`)
      return fetch(url, { ...init, headers }, options)
    },
    watch: (server) => watch(server, current, end),
    close: () => exporter.close(),
  }
}

type Within = <T>(what: Pick<Span, 'name' | 'kind' | 'attributes'>, work: () => Promise<T>) => Promise<T>

function tracedKind(kind: Kind, within: Within): Kind {
  if (!kind.upstream) return kind
  return {
    ...kind,
    open: async (config, host) => {
      const backend = await kind.open(config, host)
      const traced: Record<string, unknown> = {}
      for (const call of CALLS) {
        const real = backend[call] as ((...given: unknown[]) => Promise<unknown>) | undefined
        if (real === undefined) continue
        const attributes = { 'mayfly.backend': host.name, 'mayfly.kind': kind.type }
        traced[call] = (...given: unknown[]) =>
          within({ name: `upstream ${call}`, kind: 'client', attributes }, () => real.apply(backend, given))
      }
      return Object.assign(Object.create(backend), traced) as Backend
    },
  }
}

/** A span for each request that has a route: its template, never the path or the query. */
function watch(
  server: HttpServer,
  current: AsyncLocalStorage<Current>,
  end: (span: Begun, rest: Pick<Span, 'name' | 'kind' | 'attributes' | 'isError'>) => void,
): void {
  server.decorateRequest('span', undefined)
  server.addHook('onRequest', (request, _reply, done) => {
    const span = begin(readParent(request.headers['traceparent']))
    request.span = span
    current.run(span, done)
  })
  // The body arrives outside: what follows it belongs to the request again.
  server.addHook('preValidation', (request, _reply, done) => {
    if (request.span === undefined) done()
    else current.run(request.span, done)
  })
  server.addHook('onResponse', (request, reply, done) => {
    const { span, method } = request
    const route = request.routeOptions.url
    if (span !== undefined && route !== undefined) {
      const status = reply.statusCode
      end(span, {
        name: `${method} ${route}`,
        kind: 'server',
        attributes: {
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': status,
          'mayfly.request_id': request.id,
        },
        isError: status >= 500,
      })
    }
    done()
  })
}

function begin(parent: Current | undefined): Begun {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    parentId: parent?.spanId,
    isSampled: parent?.isSampled ?? true,
    begunAt: nowNs(),
  }
}

const ORIGIN_NS = BigInt(Math.round(performance.timeOrigin * 1e6))
const nowNs = (): bigint => ORIGIN_NS + BigInt(Math.round(performance.now() * 1e6))

/** W3C Trace Context §3.2.2; of later versions, what this one has. Undefined for anything else: the request begins a trace. */
export function readParent(header: unknown): Current | undefined {
  if (typeof header !== 'string' || header.length > 512) return undefined
  const found = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(header)
  if (found === null) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = found
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}
