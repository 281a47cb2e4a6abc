import type { Route } from '../../api/routes.ts'
import { OAUTH_ERRORS, type OAuthError } from '../../domain/oauth-problem.ts'
import { PROBLEMS, type ProblemCode } from '../../domain/problems.ts'

/** Errors that a request to any route may get, whatever the route does. */
const ANYWHERE: readonly ProblemCode[] = [
  'invalid_request',
  'not_found',
  'method_not_allowed',
  'payload_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'misdirected_request',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'store_unavailable',
]
const OAUTH: readonly OAuthError[] = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_token',
  'insufficient_scope',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_token_type',
  'invalid_scope',
  'invalid_target',
  'authorization_pending',
  'slow_down',
  'access_denied',
  'expired_token',
  'server_error',
  'temporarily_unavailable',
]

interface Response {
  readonly description: string
  readonly content: object
}

/** The errors of a route by status, and `4XX` and `5XX` for those that any request may get. */
export function errorResponses(route: Route, isOAuth: boolean): Record<string, Response> {
  if (isOAuth) return oauthResponses()
  const own = new Set([...accessErrors(route), ...(route.errors ?? []), 'invalid_request' as const])
  const statuses = [...new Set([...own].map((code) => PROBLEMS[code].status))].sort((a, b) => a - b)
  const all = [...new Set([...own, ...ANYWHERE])]
  const exact = statuses.map((status) => all.filter((code) => PROBLEMS[code].status === status))
  return Object.fromEntries([
    ...exact.map((codes, index) => [String(statuses[index]), problemResponse(codes)] as const),
    ['4XX', problemResponse(ANYWHERE.filter((code) => PROBLEMS[code].status < 500))],
    ['5XX', problemResponse(all.filter((code) => PROBLEMS[code].status >= 500))],
  ])
}

/** What the gate of a route refuses. */
function accessErrors(route: Route): ProblemCode[] {
  const confirmed = route.confirm === true ? (['confirmation_required', 'not_allowed'] as const) : []
  return [...gateErrors(route), ...confirmed]
}

function gateErrors({ access, scope, verbose }: Route): ProblemCode[] {
  if (access === 'public') return verbose === undefined ? [] : ['unauthorized', 'insufficient_scope']
  if (access === 'admin') return ['unauthorized', 'insufficient_scope', 'audit_unavailable']
  return access === 'reader' && scope !== undefined ? ['unauthorized', 'audit_unavailable'] : ['unauthorized']
}

function problemResponse(codes: readonly ProblemCode[]): Response {
  return {
    description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].message}`).join(' '),
    content: contentOf('Error', codes),
  }
}

function oauthResponses(): Record<string, Response> {
  const withStatus = (test: (status: number) => boolean) => OAUTH.filter((code) => test(OAUTH_ERRORS[code]))
  const response = (codes: readonly OAuthError[]) => ({
    description: `RFC 6749 §5.2: ${codes.map((code) => `\`${code}\``).join(', ')}.`,
    content: contentOf(
      'OAuthError',
      codes.map((code) => `oauth_${code}`),
    ),
  })
  return {
    400: response(withStatus((status) => status === 400)),
    401: response(withStatus((status) => status === 401)),
    '4XX': response(['invalid_request', 'insufficient_scope', 'temporarily_unavailable']),
    '5XX': response(withStatus((status) => status >= 500)),
  }
}

function contentOf(schema: string, examples: readonly string[]): object {
  return {
    'application/json': {
      schema: { $ref: `#/components/schemas/${schema}` },
      examples: Object.fromEntries(examples.map((name) => [name, { $ref: `#/components/examples/${name}` }])),
    },
  }
}

/** One example for each error. */
export function errorExamples(requestId: string): Record<string, object> {
  const problems = Object.entries(PROBLEMS).map(([code, { message, advice }]) => [
    code,
    { summary: advice, value: { error: { code, message, request_id: requestId } } },
  ])
  const oauth = OAUTH.map((code) => [
    `oauth_${code}`,
    { summary: `RFC 6749: ${code}`, value: { error: code, error_description: 'What is wrong.' } },
  ])
  return Object.fromEntries([...problems, ...oauth])
}
