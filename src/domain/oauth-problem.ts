/** RFC 6749 §5.2 and §4.1.2.1, RFC 6750 §3.1, RFC 7009 §2.2.1, RFC 8628 §3.5, RFC 8707 §2. */
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
  authorization_pending: 400,
  slow_down: 400,
  access_denied: 400,
  expired_token: 400,
  server_error: 500,
  temporarily_unavailable: 503,
} as const

export type OAuthError = keyof typeof OAUTH_ERRORS

/** A refusal that only OAuth has a code for. `message` is public: it holds nothing that the caller sent. */
export class OAuthProblem extends Error {
  override readonly name = 'OAuthProblem'
  readonly code: OAuthError
  readonly status: number
  /** Whole seconds; becomes `Retry-After`. */
  readonly retryAfterSeconds: number | undefined
  /** A page for people; becomes `error_uri`. */
  readonly uri: string | undefined

  constructor(
    code: OAuthError,
    message: string,
    options: { status?: number; retryAfterSeconds?: number; uri?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status ?? OAUTH_ERRORS[code]
    this.retryAfterSeconds = options.retryAfterSeconds
    this.uri = options.uri
  }
}
