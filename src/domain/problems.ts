import type { HealthReason } from './backend-health.ts'

/** Every error that a caller can see, one row per code. `docs/reference/errors.md` shows `advice` to callers. */
export const PROBLEMS = {
  invalid_request: {
    status: 400,
    message: 'The request is not valid.',
    advice: 'Correct the body or the parameters; the message names the field.',
  },
  ttl_exceeded: {
    status: 400,
    message: 'The requested ttl is longer than this backend allows.',
    advice: 'Request at most the `max_ttl` of the backend.',
  },
  unauthorized: {
    status: 401,
    message: 'Authentication is required: send "Authorization: Bearer <token>".',
    advice: 'Send a valid token; `WWW-Authenticate` says whether the server saw one.',
  },
  scope_not_allowed: {
    status: 403,
    message: 'A requested scope is not permitted.',
    advice: 'Request scopes that both you and the backend have, or ask for more with `POST /v1/request`.',
  },
  insufficient_scope: {
    status: 403,
    message: 'Your token lacks the scope that this operation needs.',
    advice: 'Use a token with the scope that `WWW-Authenticate` names.',
  },
  not_allowed: {
    status: 403,
    message: 'The rules of this server do not allow this.',
    advice: 'The message names what the operator forbids; see `signing_identity` and `signing_key_export`.',
  },
  confirmation_required: {
    status: 403,
    message: 'Confirm this with a passkey.',
    advice:
      'Have the passkey sign `error.options`, and repeat the same request with the answer in `Mayfly-Confirmation`. Empty options: register a passkey first. `sso`: the person logs in again at `sso.url`. `command: true`: log in again, and repeat the same request. Only operators get this.',
  },
  backend_not_found: {
    status: 404,
    message: 'There is no such backend.',
    advice: 'See `GET /api/v1/backends`.',
  },
  credential_not_found: {
    status: 404,
    message: 'There is no such credential.',
    advice: 'The id is unknown, or the credential is not yours.',
  },
  agent_not_found: { status: 404, message: 'There is no such agent.', advice: 'See `GET /v1/admin/agents`.' },
  operator_not_found: {
    status: 404,
    message: 'There is no such operator.',
    advice: 'See `GET /v1/admin/operators`.',
  },
  enrollment_not_found: {
    status: 404,
    message: 'There is no such enrollment.',
    advice: 'See `GET /v1/admin/pending`.',
  },
  not_found: {
    status: 404,
    message: 'There is nothing at this address.',
    advice: '`/openapi.json` lists every address.',
  },
  method_not_allowed: {
    status: 405,
    message: 'This address does not support that method; see the Allow header.',
    advice: 'Use one of the methods in `Allow`.',
  },
  conflict: {
    status: 409,
    message: 'The request conflicts with the present state.',
    advice: 'The message names the obstacle: a name in use, an earlier decision, active credentials.',
  },
  gone: {
    status: 410,
    message: 'This has expired.',
    advice: 'Enroll again: a pending enrollment expires after a day. Begin another run: this one has ended.',
  },
  payload_too_large: {
    status: 413,
    message: 'The body is larger than 65536 bytes.',
    advice: 'Send a smaller body.',
  },
  uri_too_long: { status: 414, message: 'The address is too long.', advice: 'Send a shorter address.' },
  unsupported_media_type: {
    status: 415,
    message: 'Send the body as application/json.',
    advice: 'Send `Content-Type: application/json` (forms on `/oauth/*` only), without `Content-Encoding`.',
  },
  misdirected_request: {
    status: 421,
    message: 'This server does not answer for that host name.',
    advice: 'On the host itself use `127.0.0.1` with the port of the server.',
  },
  rate_limited: {
    status: 429,
    message: 'Too many requests; wait as long as Retry-After says.',
    advice: 'Wait the number of seconds in `Retry-After`.',
  },
  headers_too_large: {
    status: 431,
    message: 'The request headers are too large.',
    advice: 'Send fewer or shorter headers.',
  },
  internal_error: {
    status: 500,
    message: 'The server failed. Quote the request id when you report it.',
    advice: 'Report the `request_id` to the operator; the log has the details.',
  },
  backend_error: {
    status: 502,
    message: 'The upstream system refused the request or sent an invalid reply.',
    advice: 'Report the `request_id` to the operator.',
  },
  store_unavailable: {
    status: 503,
    message: 'The store cannot be reached or written; nothing was changed.',
    advice: 'Try again; nothing was changed.',
  },
  audit_unavailable: {
    status: 503,
    message: 'The audit log cannot be written; nothing was issued.',
    advice: 'Try again; nothing was issued.',
  },
  backend_unavailable: {
    status: 503,
    message: 'The upstream system cannot be reached; try again later.',
    advice: 'Try again after `Retry-After`.',
  },
  backend_timeout: {
    status: 504,
    message: 'The upstream system did not answer in time.',
    advice: 'Try again; the server revokes anything that it may have created upstream.',
  },
} as const satisfies Record<string, { status: number; message: string; advice: string }>

export type ProblemCode = keyof typeof PROBLEMS

export interface ProblemOptions {
  /** Public text; the table's message if absent. Never contains the caller's input or upstream text. */
  message?: string
  /** For the log only. */
  detail?: string | undefined
  cause?: unknown
  /** Whole seconds until a retry makes sense; becomes `Retry-After`. */
  retryAfterSeconds?: number | undefined
  /** The missing scope; becomes part of `WWW-Authenticate` (RFC 6750 §3). */
  scope?: string | undefined
  /** The log has it already: it is not logged once more with the request. */
  logged?: boolean
  /** A token was sent and refused: `error="invalid_token"` (RFC 6750 §3.1). */
  invalidToken?: boolean
  /** The route takes a user name and a password: the challenge of a 401 is that of RFC 7617. */
  basic?: boolean
  /** What a passkey is to sign; becomes `error.options`. */
  options?: object
  /** What was wrong with an upstream that was tried; becomes `error.reason`. */
  reason?: HealthReason
}

/** An expected 4xx or 5xx answer. Its message is public. */
export class Problem extends Error {
  override readonly name: string = 'Problem'
  readonly code: ProblemCode
  readonly status: number
  readonly detail: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly scope: string | undefined
  readonly isLogged: boolean
  readonly invalidToken: boolean
  readonly basic: boolean
  readonly options: object | undefined
  readonly reason: HealthReason | undefined

  constructor(code: ProblemCode, options: ProblemOptions = {}) {
    super(
      options.message ?? PROBLEMS[code].message,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.code = code
    this.status = PROBLEMS[code].status
    this.detail = options.detail
    this.retryAfterSeconds = options.retryAfterSeconds
    this.scope = options.scope
    this.isLogged = options.logged ?? false
    this.invalidToken = options.invalidToken ?? false
    this.basic = options.basic ?? false
    this.options = options.options
    this.reason = options.reason
  }
}

/** Shorthand for the most common problem: `throw invalid('"ttl" is not a duration such as 10m')`. */
export function invalid(message: string, detail?: string): Problem {
  return new Problem('invalid_request', { message, detail })
}
