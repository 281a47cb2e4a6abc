import type { DoneFuncWithErrOrRes, FastifyReply, FastifyRequest, FastifySchema, RouteOptions } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { ROUTES, type Route, type RouteName, type RouteRule } from '../../api/routes.ts'
import { ErrorBody, OAuthErrorBody } from '../../api/shared.ts'
import type { Actor, AgentCaller, Caller, OperatorCaller } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import type { HttpServer } from '../server/server.ts'
import type { Gate } from './gate.ts'
import { originOf } from './origin.ts'
import type { ReplyBatch } from './reply-batch.ts'

/** The parts that every file of routes receives. */
export interface Http {
  readonly server: HttpServer
  readonly core: Core
  readonly gate: Gate
  readonly replies: ReplyBatch
}

type Row<N extends RouteName> = (typeof ROUTES)[N]
type Part<N extends RouteName, K extends 'params' | 'query' | 'body'> =
  Row<N> extends Readonly<Record<K, infer S extends TSchema>> ? Static<S> : undefined
type CallerOf<N extends RouteName> = Row<N>['access'] extends 'agent'
  ? AgentCaller
  : Row<N>['access'] extends 'session'
    ? OperatorCaller
    : Row<N>['access'] extends 'public'
      ? undefined
      : Caller

export interface Call<N extends RouteName> {
  readonly rule: RouteRule
  readonly actor: Actor<CallerOf<N>>
  readonly params: Part<N, 'params'>
  readonly query: Part<N, 'query'>
  readonly body: Part<N, 'body'>
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/**
 * Routes that act refuse a query that they do not declare, so that no parameter in the wrong place is silently ignored:
 * `?ttl=1m` would issue for the default. Secrets in an address also end up in logs (RFC 6749 §2.3.1).
 */
const NO_QUERY = Type.Object({}, { additionalProperties: false })

/**
 * Registers one route of the table. The handler returns the body of the reply; `undefined` sends none. Where the table has
 * one status, the reply has it already.
 */
export function addRoute<N extends RouteName>(http: Http, name: N, handle: (call: Call<N>) => unknown): void {
  const [method, url] = name.split(' ') as [RouteOptions['method'], string]
  const route: Route = ROUTES[name]
  const [status, ...others] = Object.keys(route.replies).map(Number)
  const options: Omit<RouteOptions, 'url'> = {
    method,
    schema: schemaOf(route, url, method === 'GET'),
    // HEAD must not run recorded actions, such as issuing by GET.
    exposeHeadRoute: method === 'GET' && route.audit === undefined && route.access !== 'agent',
    config: route.cacheControl === undefined ? {} : { cacheControl: route.cacheControl },
    ...gateHooks(http, route, method),
    handler: (request: FastifyRequest, reply: FastifyReply) => {
      if (status !== undefined && status !== 200 && others.length === 0) reply.code(status)
      const result = handle(callOf<N>(route, request, reply))
      return result instanceof Promise ? http.replies.hold(result) : result
    },
  }
  for (const path of pathsOf(name)) http.server.route({ ...options, url: path })
}

/** The paths of a route, as the framework writes them. */
export function pathsOf(name: RouteName): string[] {
  const url = name.slice(name.indexOf(' ') + 1)
  const { below }: Route = ROUTES[name]
  return below === true ? [url, `${url}/*`] : [url]
}

/** What the framework validates and serialises. It warns of a part that is there and undefined. */
function schemaOf(
  { params, query, headers, body, replies }: Route,
  url: string,
  isGet: boolean,
): FastifySchema {
  const querystring = query ?? (isGet ? undefined : NO_QUERY)
  const response = { ...replies, ...errorResponses(url) }
  const parts = Object.entries({ params, querystring, headers, body, response })
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined))
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
  const { before, after, confirm, answered } = gate(rule)
  if (method === 'GET') return { onRequest: before }
  const hooks = {
    onRequest: before,
    preValidation: after,
    ...(confirm === undefined ? {} : { preHandler: confirm }),
  }
  if (answered === undefined) return hooks
  return {
    ...hooks,
    onSend: (request: FastifyRequest, reply: FastifyReply, payload: unknown, done: DoneFuncWithErrOrRes) => {
      answered(request, reply)
      done(null, payload)
    },
  }
}

function callOf<N extends RouteName>(rule: RouteRule, request: FastifyRequest, reply: FastifyReply): Call<N> {
  return {
    rule,
    actor: (request.actor ?? { caller: undefined, origin: originOf(request) }) as Actor<CallerOf<N>>,
    params: request.params as Part<N, 'params'>,
    query: request.query as Part<N, 'query'>,
    body: (request.body ?? undefined) as Part<N, 'body'>,
    request,
    reply,
  }
}

function errorResponses(url: string): Record<string, TSchema> {
  const body = url.startsWith('/oauth/') ? OAuthErrorBody : ErrorBody
  return { '4xx': body, '5xx': body }
}

/** Checks at the end of the boot that every entry of the table has a route, and every route an entry. Throws `Error`. */
export function checkRoutes(registered: ReadonlySet<string>): void {
  const names = Object.keys(ROUTES) as RouteName[]
  const known = new Set(names.flatMap((name) => pathsOf(name).map((path) => `${name.split(' ')[0]} ${path}`)))
  const missing = [...known].filter((name) => !registered.has(name))
  const extra = [...registered].filter((name) => !known.has(name))
  if (missing.length + extra.length > 0) {
    throw new Error(
      `the route table does not match the routes; entries without a route: ${missing.join(', ') || 'none'}; routes without an entry: ${extra.join(', ') || 'none'}`,
    )
  }
}
