import { PROBLEMS } from '../src/domain/problems.ts'
import { OAUTH_ERRORS } from '../src/http/server/oauth-problem.ts'
import { MADE, table } from './markdown.ts'

/** docs/errors.md. */
export function renderErrorsPage(): string {
  const rows = Object.entries(PROBLEMS).map(([code, { status, message, advice }]) => [
    `\`${code}\``,
    String(status),
    message,
    advice,
  ])
  const oauth = Object.entries(OAUTH_ERRORS).map(([code, status]) => [`\`${code}\``, String(status)])
  return `${[
    MADE,
    '# Errors',
    'Every error outside `/oauth/` has one shape. `request_id` equals the header `X-Request-Id`. Show the message to people; programs act on `code`. The server may send a more specific message than the one below.',
    '```json\n{ "error": { "code": "backend_not_found", "message": "There is no such backend.", "request_id": "req_…" } }\n```',
    table(['Code', 'Status', 'Message', 'What to do'], rows),
    'A resource of another agent answers exactly like one that does not exist. A request that does not arrive in time gets status 408 and `invalid_request`.',
    '## Under `/oauth/`',
    'Errors under `/oauth/` have the shape of RFC 6749 §5.2, which standard clients expect: `{"error":"invalid_client","error_description":"…"}`. Other problems keep their status: 429 and 503 are `temporarily_unavailable` with `Retry-After`.',
    table(['Error', 'Status'], oauth),
  ].join('\n\n')}\n`
}
