import type { Problem, ProblemCode } from '../../domain/problems.ts'

/** RFC 6749 §5.2 and §4.1.2.1, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 8707 §2. */
export const OAUTH_ERRORS = {
  invalid_request: 400,
  invalid_client: 401,
  invalid_grant: 400,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_token_type: 400,
  invalid_scope: 400,
  invalid_target: 400,
  invalid_token: 401,
  insufficient_scope: 403,
  server_error: 500,
  temporarily_unavailable: 503,
} as const

export type OAuthError = keyof typeof OAUTH_ERRORS

/** An error in the terms of OAuth. `description` is public and contains no input of the caller. */
export class OAuthProblem extends Error {
  override readonly name = 'OAuthProblem'
  readonly error: OAuthError
  readonly description: string
  readonly status: number
  /** Whole seconds; becomes `Retry-After`. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    error: OAuthError,
    description: string,
    options: { status?: number; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(description, options.cause === undefined ? undefined : { cause: options.cause })
    this.error = error
    this.description = description
    this.status = options.status ?? OAUTH_ERRORS[error]
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

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

/** `{"error","error_description"}` as JSON text; characters that RFC 6749 §5.2 forbids become `?`. */
export function oauthErrorBody(problem: OAuthProblem): string {
  const description = problem.description.replaceAll('"', "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?')
  return JSON.stringify({ error: problem.error, error_description: description })
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
