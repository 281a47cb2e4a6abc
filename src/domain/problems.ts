/**
 * Every error that a caller can see: one row a code. `docs/reference/errors.md` and the tests are held against this
 * table in both directions.
 */
export const PROBLEMS = {
  invalid_request: { status: 400, message: 'The request is not valid.' },
  ttl_exceeded: { status: 400, message: 'The requested ttl is longer than this backend allows.' },
  unauthorized: { status: 401, message: 'Authentication is required: send "Authorization: Bearer <token>".' },
  scope_not_allowed: { status: 403, message: 'A requested scope is not permitted.' },
  insufficient_scope: { status: 403, message: 'Your token lacks the scope that this operation needs.' },
  not_allowed: { status: 403, message: 'The rules of this server do not allow this.' },
  backend_not_found: { status: 404, message: 'There is no such backend.' },
  credential_not_found: { status: 404, message: 'There is no such credential.' },
  agent_not_found: { status: 404, message: 'There is no such agent.' },
  enrollment_not_found: { status: 404, message: 'There is no such enrollment.' },
  not_found: { status: 404, message: 'There is nothing at this address.' },
  method_not_allowed: {
    status: 405,
    message: 'This address does not answer that method; see the Allow header.',
  },
  conflict: { status: 409, message: 'The request conflicts with the present state.' },
  gone: { status: 410, message: 'This has expired.' },
  payload_too_large: { status: 413, message: 'The body is larger than 65536 bytes.' },
  uri_too_long: { status: 414, message: 'The address is too long.' },
  unsupported_media_type: { status: 415, message: 'Send the body as application/json.' },
  misdirected_request: { status: 421, message: 'This server does not answer for that host name.' },
  rate_limited: { status: 429, message: 'Too many requests; wait as long as Retry-After says.' },
  headers_too_large: { status: 431, message: 'The request headers are too large.' },
  internal_error: { status: 500, message: 'The server failed. Quote the request id when you report it.' },
  backend_error: {
    status: 502,
    message: 'The upstream system refused or gave an answer that makes no sense.',
  },
  store_unavailable: { status: 503, message: 'The store cannot be reached or written; nothing was changed.' },
  audit_unavailable: { status: 503, message: 'The audit log cannot be written; nothing was issued.' },
  backend_unavailable: { status: 503, message: 'The upstream system cannot be reached; try again later.' },
  backend_timeout: { status: 504, message: 'The upstream system did not answer in time.' },
} as const satisfies Record<string, { status: number; message: string }>

export type ProblemCode = keyof typeof PROBLEMS

export interface ProblemOptions {
  /** Public text; the table's own where absent. Never holds what the caller sent, nor upstream text. */
  message?: string
  /** For the log only. */
  detail?: string
  cause?: unknown
  /** Whole seconds until a retry makes sense; becomes `Retry-After`. */
  retryAfterSeconds?: number
  /** The scope that the caller lacks; becomes part of `WWW-Authenticate` (RFC 6750 §3). */
  scope?: string
  /** A token was sent and refused: `error="invalid_token"` (RFC 6750 §3.1). */
  invalidToken?: boolean
}

/** An answer of 4xx or 5xx that was foreseen: what it says may be shown to the caller. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly status: number
  readonly detail: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly scope: string | undefined
  readonly invalidToken: boolean

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
    this.invalidToken = options.invalidToken ?? false
  }
}

/** Shorthand for the commonest problem: `throw invalid('"ttl" is not a duration such as 10m')`. */
export function invalid(message: string, detail?: string): Problem {
  return new Problem('invalid_request', detail === undefined ? { message } : { message, detail })
}
