import { OAUTH_ERRORS } from '../src/domain/oauth-problem.ts'
import { PROBLEMS, type ProblemCode } from '../src/domain/problems.ts'
import { MADE, table } from './markdown.ts'

/** What a caller does about it. A code without a line here does not compile. */
const ADVICE: Readonly<Record<ProblemCode, string>> = {
  invalid_request: 'Mend the body or the parameters; the message names the field.',
  ttl_exceeded: 'Ask for no more than the `max_ttl` of the backend.',
  unauthorized: 'Send a token that is good; `WWW-Authenticate` says whether one was seen.',
  scope_not_allowed: 'Ask for scopes that both you and the backend have, or `POST /v1/request` for more.',
  insufficient_scope: 'Use a token with the scope that `WWW-Authenticate` names.',
  not_allowed:
    'The message says what the operator has ruled out; see `signing_identity` and `signing_key_export`.',
  backend_not_found: 'See `GET /api/v1/backends`.',
  credential_not_found: 'The id is unknown, or it is not yours.',
  agent_not_found: 'See `GET /v1/admin/agents`.',
  enrollment_not_found: 'See `GET /v1/admin/pending`.',
  not_found: 'See `/openapi.json` for what there is.',
  method_not_allowed: 'Use one of the methods in `Allow`.',
  conflict:
    'The message says what stands in the way: a taken name, a second decision, credentials that live.',
  gone: 'Enroll again: a pending enrollment waits for a day.',
  payload_too_large: 'Send less.',
  uri_too_long: 'Send a shorter address.',
  unsupported_media_type:
    'Send `Content-Type: application/json` (forms on `/oauth/*` only), without `Content-Encoding`.',
  misdirected_request:
    'From this very host use `localhost`, `127.0.0.1` or `[::1]` with the port of the server.',
  rate_limited: 'Wait as many seconds as `Retry-After` says.',
  headers_too_large: 'Send fewer or shorter headers.',
  internal_error: 'Tell the operator the `request_id`: the log has the rest.',
  backend_error: 'Tell the operator the `request_id`: the upstream refused.',
  store_unavailable: 'Try again; nothing was changed.',
  audit_unavailable: 'Try again; nothing was issued.',
  backend_unavailable: 'Try again after `Retry-After`.',
  backend_timeout: 'Try again: what may have been created upstream is revoked.',
}

/** docs/reference/errors.md. */
export function renderErrorsPage(): string {
  const rows = Object.entries(PROBLEMS).map(([code, { status, message }]) => [
    `\`${code}\``,
    String(status),
    message,
    ADVICE[code as ProblemCode],
  ])
  const oauth = Object.entries(OAUTH_ERRORS).map(([code, status]) => [`\`${code}\``, String(status)])
  return `${[
    MADE,
    '# Errors',
    'Every error outside `/oauth/` has one shape. `request_id` is that of the header `X-Request-Id`; the message may be told to people, programs go by `code`. A code may have a more exact message than the one below.',
    '```json\n{ "error": { "code": "backend_not_found", "message": "There is no such backend.", "request_id": "req_…" } }\n```',
    table(['Code', 'Status', 'Message', 'What to do'], rows),
    'What belongs to somebody else answers exactly as what does not exist. A request that did not arrive in time is answered with status 408 and `invalid_request`.',
    '## Under `/oauth/`',
    'These answer in the shape of RFC 6749 §5.2, which standard clients expect: `{"error":"invalid_client","error_description":"…"}`. Other problems keep their status: 429 and 503 are `temporarily_unavailable` with `Retry-After`.',
    table(['Error', 'Status'], oauth),
  ].join('\n\n')}\n`
}
