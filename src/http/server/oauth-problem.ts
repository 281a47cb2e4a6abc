import { type OAuthError, OAuthProblem } from '../../domain/oauth-problem.ts'
import type { Problem, ProblemCode } from '../../domain/problems.ts'

function oauthErrorOf(code: ProblemCode, status: number): OAuthError {
  switch (code) {
    case 'unauthorized':
      return 'invalid_client'
    case 'scope_not_allowed':
      return 'invalid_scope'
    case 'insufficient_scope':
      return 'insufficient_scope'
    case 'rate_limited':
      return 'temporarily_unavailable'
    default:
      if (status < 500) return 'invalid_request'
      return status === 503 ? 'temporarily_unavailable' : 'server_error'
  }
}

/** RFC 6749 §5.2 gives a scope outside the grant 400; every other problem keeps its status. */
export function toOAuthProblem(problem: Problem): OAuthProblem {
  const error = oauthErrorOf(problem.code, problem.status)
  return new OAuthProblem(error, problem.message, {
    status: error === 'invalid_scope' ? 400 : problem.status,
    cause: problem,
    ...(problem.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: problem.retryAfterSeconds }),
  })
}

/** `{"error","error_description"}`, perhaps with `error_uri`, as JSON text; characters that RFC 6749 §5.2 forbids become `?`. */
export function oauthErrorBody(problem: OAuthProblem): string {
  const description = problem.message.replaceAll('"', "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  return JSON.stringify({ error: problem.code, error_description: description, error_uri: problem.uri })
}

/**
 * `WWW-Authenticate` of a 401 under `/oauth/`: the scheme that the client used (RFC 6749 §5.2). Credentials in the form
 * get no challenge, because strict clients read any challenge as "use the header instead".
 */
export function oauthChallenge(problem: OAuthProblem, authorization: string | undefined): string | undefined {
  if (authorization === undefined || problem.status !== 401) return undefined
  if (/^bearer(?: |$)/i.test(authorization)) return 'Bearer realm="mayfly", error="invalid_token"'
  return 'Basic realm="mayfly"'
}
