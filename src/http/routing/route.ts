import type { DoneFuncWithErrOrRes, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { type Static, type TObject, type TSchema, Type } from 'typebox'
import { ErrorBody, OAuthErrorBody } from '../../api/shared.ts'
import type { Actor, AgentCaller, Caller } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import type { HttpServer } from '../server/server.ts'
import type { Gate } from './gate.ts'
import { OPERATIONS } from './operations.ts'
import { originOf } from './origin.ts'
import type { ReplyBatch } from './reply-batch.ts'
import { ROUTES, type RouteName, type RouteRule } from './route-table.ts'

/** The parts that every file of routes receives. */
export interface Http {
  readonly server: HttpServer
  readonly core: Core
  readonly gate: Gate
  readonly replies: ReplyBatch
}

export interface RouteSchema {
  /** One line for the OpenAPI document. */
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly params?: TObject
  readonly querystring?: TObject
  readonly headers?: TObject
  readonly body?: TSchema
  /** By status. The schema is the allow-list: fields that it does not name are not sent. */
  readonly response: Readonly<Record<number, TSchema>>
  readonly consumes?: readonly string[]
  /** Media types of replies that are not JSON. */
  readonly produces?: readonly string[]
}

type Part<S extends RouteSchema, K extends 'params' | 'querystring' | 'body'> = S[K] extends TSchema
  ? Static<S[K]>
  : undefined
type CallerOf<N extends RouteName> = (typeof ROUTES)[N]['access'] extends 'agent'
  ? AgentCaller
  : (typeof ROUTES)[N]['access'] extends 'public'
    ? undefined
    : Caller

export interface Call<N extends RouteName, S extends RouteSchema> {
  readonly rule: (typeof ROUTES)[N]
  readonly actor: Actor<CallerOf<N>>
  readonly params: Part<S, 'params'>
  readonly query: Part<S, 'querystring'>
  readonly body: Part<S, 'body'>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

export interface RouteDefinition<N extends RouteName, S extends RouteSchema> {
  readonly schema: S
  readonly cacheControl?: string
  /** Returns the body of the reply; `undefined` sends none. */
  handle(call: Call<N, S>): unknown
}

/**
 * Routes that act refuse a query that they do not declare, so that no parameter in the wrong place is silently ignored:
 * `?ttl=1m` would issue for the default. Secrets in an address also end up in logs (RFC 6749 §2.3.1).
 */
const NO_QUERY = Type.Object({}, { additionalProperties: false })

/** Registers one route. The route table says who may call it; the schema defines its input and output. */
export function addRoute<N extends RouteName, const S extends RouteSchema>(
  http: Http,
  name: N,
  definition: RouteDefinition<N, S>,
): void {
  const [method, url] = name.split(' ') as [RouteOptions['method'], string]
  const ownRule = ROUTES[name]
  const rule: RouteRule = ownRule
  const { response, ...rest } = definition.schema
  http.server.route({
    method,
    url,
    schema: {
      ...(method === 'GET' ? {} : { querystring: NO_QUERY }),
      ...rest,
      operationId: OPERATIONS[name].id,
      security: url.startsWith('/oauth/') ? [{ client: [] }, {}] : securityOf(rule),
      response: { ...response, ...errorResponses(url) },
    } as never,
    // HEAD must not run recorded actions, such as issuing by GET.
    exposeHeadRoute: method === 'GET' && rule.audit === undefined && rule.access !== 'agent',
    config: definition.cacheControl === undefined ? {} : { cacheControl: definition.cacheControl },
    ...gateHooks(http, rule, method),
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      const result = definition.handle(callOf<N, S>(ownRule, request, reply))
      return result instanceof Promise ? http.replies.hold(result) : result
    },
  })
}

/** A GET has no body to wait for (`request-rules.ts`). */
function gateHooks({ gate }: Http, rule: RouteRule, method: RouteOptions['method']) {
  if (rule.verbose !== undefined) {
    const { before } = gate({ access: 'admin', scope: rule.verbose })
    return {
      onRequest: (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) =>
        'verbose' in (request.query as object) ? before(request, reply, done) : done(),
    }
  }
  if (rule.access === 'public') return {}
  const { before, after, answered } = gate(rule)
  if (method === 'GET') return { onRequest: before }
  const hooks = { onRequest: before, preValidation: after }
  if (answered === undefined) return hooks
  return {
    ...hooks,
    onSend: (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneFuncWithErrOrRes) => {
      answered(request, reply)
      done(null, payload)
    },
  }
}

function callOf<N extends RouteName, S extends RouteSchema>(
  rule: (typeof ROUTES)[N],
  request: FastifyRequest,
  reply: FastifyReply,
): Call<N, S> {
  return {
    rule,
    actor: (request.actor ?? { caller: undefined, origin: originOf(request) }) as Actor<CallerOf<N>>,
    params: request.params as Part<S, 'params'>,
    query: request.query as Part<S, 'querystring'>,
    body: (request.body ?? undefined) as Part<S, 'body'>,
    request,
    reply,
  }
}

function errorResponses(url: string): Record<string, TSchema> {
  const body = url.startsWith('/oauth/') ? OAuthErrorBody : ErrorBody
  return { '4xx': body, '5xx': body }
}

function securityOf(rule: RouteRule): Record<string, string[]>[] {
  if (rule.access === 'public') return []
  return rule.access === 'agent'
    ? [{ bearer: [] }]
    : [{ bearer: rule.scope === undefined ? [] : [rule.scope] }, {}]
}

/** Checks at the end of the boot that every entry of the table has a route, and every route an entry. Throws `Error`. */
export function checkRoutes(registered: ReadonlySet<string>): void {
  const known = new Set<string>(Object.keys(ROUTES))
  const missing = [...known].filter((name) => !registered.has(name))
  const extra = [...registered].filter((name) => !known.has(name))
  if (missing.length + extra.length > 0) {
    throw new Error(
      `the route table does not match the routes; entries without a route: ${missing.join(', ') || 'none'}; routes without an entry: ${extra.join(', ') || 'none'}`,
    )
  }
}
