import { OAUTH_ERRORS } from '../src/domain/oauth-problem.ts'
import { PROBLEMS } from '../src/domain/problems.ts'
import { MADE, table } from './markdown.ts'

/** docs/reference/errors.md. */
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
    'Every error outside `/oauth/` has the same shape. Programs go by `code`; show `message` to people. `request_id` is also in the header `X-Request-Id`, in the log and in the audit. A message may be more specific than the one below.',
    '```json\n{ "error": { "code": "backend_not_found", "message": "There is no such backend.", "request_id": "req_…" } }\n```',
    table(['Code', 'Status', 'Message', 'What to do'], rows),
    'A request for what belongs to another agent gets the same answer as a request for what does not exist. A request that does not arrive in time gets status 408 and `invalid_request`.',
    '## Under `/oauth/`',
    'These paths answer in the shape of RFC 6749 §5.2, which standard clients expect: `{"error":"invalid_client","error_description":"…"}`. Other problems keep their status: 429 and 503 are `temporarily_unavailable` with `Retry-After`.',
    table(['Error', 'Status'], oauth),
  ].join('\n\n')}\n`
}
