import type { ErrorObject } from 'ajv'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { OAuthProblem } from '../../domain/oauth-problem.ts'
import { Problem, type ProblemCode } from '../../domain/problems.ts'
import { oauthChallenge, oauthErrorBody, toOAuthProblem } from './oauth-problem.ts'
import { describeErrors } from './validation.ts'

/** The part of a logger that this folder uses. */
export interface HttpLog {
  error(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  debug(fields: Record<string, unknown>, message: string): void
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** `Retry-After` in seconds of a 429 or 503 that names none. */
const DEFAULT_RETRY_AFTER = 1

/** The body of every error outside `/oauth/`, as JSON text. */
export function errorBody(
  {
    code,
    message,
    options,
    reason,
  }: Pick<Problem, 'code' | 'message'> & Partial<Pick<Problem, 'options' | 'reason'>>,
  requestId: string,
): string {
  return JSON.stringify({ error: { code, message, request_id: requestId, options, reason } })
}

/** RFC 6750 §3; RFC 7617 §2 where a password is asked for. */
function challengeOf(problem: Problem): string | undefined {
  if (problem.status === 401 && problem.basic) return 'Basic realm="mayfly", charset="UTF-8"'
  const realm = 'Bearer realm="mayfly"'
  if (problem.status === 401) return problem.invalidToken ? `${realm}, error="invalid_token"` : realm
  if (problem.code !== 'insufficient_scope') return undefined
  const scope = problem.scope?.replace(/[^\x21\x23-\x5b\x5d-\x7e ]/g, '')
  return `${realm}, error="insufficient_scope"${scope === undefined ? '' : `, scope="${scope}"`}`
}

function isOAuth(request: FastifyRequest): boolean {
  const path = request.routeOptions.url ?? request.raw.url ?? ''
  return path.startsWith('/oauth/')
}

/** Sends a problem in the shape of its path, and replaces headers that were set before by the standard ones. */
export function sendProblem(reply: FastifyReply, problem: Problem | OAuthProblem): FastifyReply {
  const { request } = reply
  const oauth = problem instanceof OAuthProblem || isOAuth(request)
  const shown = oauth && problem instanceof Problem ? toOAuthProblem(problem) : problem
  reply.code(shown.status)
  reply.header('content-type', JSON_TYPE)
  reply.header('cache-control', 'no-store')
  reply.header('x-content-type-options', 'nosniff')
  reply.header('x-request-id', request.id)
  const challenge =
    shown instanceof OAuthProblem ? oauthChallenge(shown, request.headers.authorization) : challengeOf(shown)
  if (challenge !== undefined) reply.header('www-authenticate', challenge)
  if (shown.status === 429 || shown.status === 503 || shown.retryAfterSeconds !== undefined) {
    reply.header('retry-after', String(shown.retryAfterSeconds ?? DEFAULT_RETRY_AFTER))
  }
  // The body is text, so no response schema can drop a field.
  return reply.send(shown instanceof OAuthProblem ? oauthErrorBody(shown) : errorBody(shown, request.id))
}

/** Errors of the framework that the caller caused. Any other error is a bug of ours. */
const FRAMEWORK: Readonly<Record<string, { code: ProblemCode; message?: string }>> = {
  FST_ERR_VALIDATION: { code: 'invalid_request' },
  FST_ERR_BAD_URL: { code: 'invalid_request', message: 'The address has an invalid percent-encoding.' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'uri_too_long', message: 'A part of the path is too long.' },
  FST_ERR_NOT_FOUND: { code: 'not_found' },
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'payload_too_large' },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: { code: 'unsupported_media_type' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'invalid_request',
    message: 'The length of the body differs from Content-Length.',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'invalid_request', message: 'The body is empty.' },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'invalid_request', message: 'The body is not valid JSON.' },
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: { code: 'unsupported_media_type' },
}

/** The problem to answer with, and whether it was expected. */
function toProblem(
  error: unknown,
  request: FastifyRequest,
): { problem: Problem | OAuthProblem; expected: boolean } {
  if (error instanceof Problem || error instanceof OAuthProblem) return { problem: error, expected: true }
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  const known = typeof code === 'string' && Object.hasOwn(FRAMEWORK, code) ? FRAMEWORK[code] : undefined
  if (known !== undefined) {
    const options = known.message === undefined ? {} : { message: known.message }
    return { problem: new Problem(known.code, options), expected: true }
  }
  // The connection broke while the body was being read: nobody receives the answer.
  if (request.raw.destroyed && !request.raw.complete) {
    return {
      problem: new Problem('invalid_request', { message: 'The body arrived incomplete.' }),
      expected: true,
    }
  }
  return { problem: new Problem('internal_error', { cause: error }), expected: false }
}

function answerError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: HttpLog,
): FastifyReply {
  const { problem, expected } = toProblem(error, request)
  const where = { request_id: request.id, method: request.method, route: request.routeOptions.url }
  if (!expected) {
    log.error({ ...where, err: error }, 'unexpected error')
  } else if (problem instanceof Problem && (problem.isLogged || problem.code === 'store_unavailable')) {
    // The store says itself when it fails, and when it works again: once, and not for each request. So does the health of a backend.
    log.debug({ ...where, code: problem.code, detail: problem.detail, err: problem }, 'request failed')
  } else if (problem instanceof Problem && problem.status >= 500) {
    log.warn({ ...where, code: problem.code, detail: problem.detail, err: problem }, 'request failed')
  } else if (problem instanceof Problem && problem.detail !== undefined) {
    log.debug({ ...where, code: problem.code, detail: problem.detail }, 'request refused')
  }
  return sendProblem(reply, problem)
}

/** Methods that have a route for this request's path, in the order of the framework's list. */
function allowedMethods(server: FastifyInstance, url: string): string[] {
  return server.supportedMethods.filter((method) => server.findRoute({ method, url }) !== null)
}

/** 405 with `Allow` if the path exists under another method, otherwise 404. */
export function sendNotFound(
  server: FastifyInstance,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const methods = allowedMethods(server, request.raw.url ?? '/')
  if (methods.length === 0) return sendProblem(reply, new Problem('not_found'))
  reply.header('allow', methods.join(', '))
  return sendProblem(reply, new Problem('method_not_allowed'))
}

/** Handles errors that occur before routing, mostly bad addresses. */
export function createFrameworkErrorHandler(
  log: HttpLog,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => void {
  return (error, request, reply) => {
    answerError(error, request, reply, log)
  }
}

/** Gives every error of routes, hooks, schemas and the router our one shape. */
export function installErrorHandlers(server: FastifyInstance, options: { log: HttpLog }): void {
  server.setErrorHandler((error, request, reply) => {
    answerError(error, request, reply, options.log)
  })
  server.setNotFoundHandler((request, reply) => {
    sendNotFound(server, request, reply)
  })
  server.setSchemaErrorFormatter((errors, part) => {
    const problem = describeErrors(errors as ErrorObject[], part)
    // Fastify attaches the list to the error; with `verbose` it contains the caller's input.
    errors.length = 0
    return problem
  })
}
