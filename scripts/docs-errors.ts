import { OAUTH_ERRORS } from '../src/domain/oauth-problem.ts'
import { PROBLEMS, type ProblemCode } from '../src/domain/problems.ts'
import { MADE, table } from './markdown.ts'

/** What a caller does about it. A code without a line here does not compile. */
const ADVICE: Readonly<Record<ProblemCode, string>> = {
  invalid_request: 'Fix the body or the parameters. The message names the field.',
  ttl_exceeded: 'Ask for no more than the `max_ttl` of the backend.',
  unauthorized: 'Send a valid token. `WWW-Authenticate` says whether the server saw one.',
  scope_not_allowed:
    'Ask for scopes that both you and the backend have, or ask for more with `POST /v1/request`.',
  insufficient_scope: 'Use a token with the scope that `WWW-Authenticate` names.',
  not_allowed:
    'The message says what the operator does not allow. See the settings `signing_identity` and `signing_key_export`.',
  backend_not_found: 'See `GET /api/v1/backends`.',
  credential_not_found: 'The id is unknown, or the credential is not yours.',
  agent_not_found: 'See `GET /v1/admin/agents`.',
  enrollment_not_found: 'See `GET /v1/admin/pending`.',
  not_found: 'See `/openapi.json` for the paths that exist.',
  method_not_allowed: 'Use one of the methods in `Allow`.',
  conflict:
    'The message names the obstacle: a name that is taken, a second decision, credentials that are active.',
  gone: 'Enroll again: a pending enrollment waits for a day.',
  payload_too_large: 'Send a smaller body.',
  uri_too_long: 'Send a shorter address.',
  unsupported_media_type:
    'Send `Content-Type: application/json` (forms on `/oauth/*` only), without `Content-Encoding`.',
  misdirected_request:
    'On the server’s own host, use `localhost`, `127.0.0.1` or `[::1]` with the port of the server.',
  rate_limited: 'Wait as many seconds as `Retry-After` says.',
  headers_too_large: 'Send fewer or shorter headers.',
  internal_error: 'Give the operator the `request_id`: the log has the details.',
  backend_error: 'Give the operator the `request_id`: the upstream system refused.',
  store_unavailable: 'Try again. Nothing was changed.',
  audit_unavailable: 'Try again. Nothing was issued.',
  backend_unavailable: 'Try again after `Retry-After`.',
  backend_timeout: 'Try again. Mayfly revokes what the upstream system may have created.',
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
    'Every error outside `/oauth/` has the same shape. Programs go by `code`; show `message` to people. `request_id` is also in the header `X-Request-Id`, in the log and in the audit. A message may be more specific than the one below.',
    '```json\n{ "error": { "code": "backend_not_found", "message": "There is no such backend.", "request_id": "req_…" } }\n```',
    table(['Code', 'Status', 'Message', 'What to do'], rows),
    'A request for what belongs to another agent gets the same answer as a request for what does not exist. A request that does not arrive in time gets status 408 and `invalid_request`.',
    '## Under `/oauth/`',
    'These paths answer in the shape of RFC 6749 §5.2, which standard clients expect: `{"error":"invalid_client","error_description":"…"}`. Other problems keep their status: 429 and 503 are `temporarily_unavailable` with `Retry-After`.',
    table(['Error', 'Status'], oauth),
  ].join('\n\n')}\n`
}
