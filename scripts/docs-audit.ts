import type { AuditEntry } from '../src/api/api-v1.ts'
import { ACTION_MEANING, ACTIONS } from '../src/domain/actions.ts'
import { MADE, table } from './markdown.ts'

const FIELD_MEANING: Readonly<Record<keyof typeof AuditEntry.properties, string>> = {
  id: 'Time-ordered.',
  timestamp: 'RFC 3339, UTC, milliseconds.',
  action: 'One of the actions below.',
  outcome: '`ok`, `denied` or `failed`.',
  agent_id: 'The agent concerned.',
  agent_name: 'The name of the agent at the time.',
  actor: 'Who acted: the id of an agent, `local` or `system`.',
  backend: 'The backend, if any.',
  credential_id: 'The credential, if any.',
  scopes: 'The requested or granted scopes.',
  ttl: 'The requested lifetime.',
  ip_address: 'Address of the client.',
  user_agent: 'The `User-Agent` header; control characters escaped.',
  auth_method: '`opaque`, `jwt`, `loopback`, `admin_token`, `unix_socket` or a client authentication.',
  request_id: 'The value of `X-Request-Id`.',
  metadata: 'Metadata that the caller sent.',
  details: 'Details specific to the action.',
}

/** docs/audit.md. */
export function renderAuditPage(): string {
  return `${[
    MADE,
    '# The audit',
    'Every acknowledged action is recorded: the entry is committed together with the action, and if it cannot be written, nothing is issued. Entries never change. An agent reads its own entries with `GET /api/v1/audit`; `admin:audit:read` and the local host read all entries, also at `GET /v1/admin/audit`.',
    '## Fields',
    table(
      ['Field', 'Meaning'],
      Object.entries(FIELD_MEANING).map(([name, text]) => [`\`${name}\``, text]),
    ),
    '## Actions',
    table(
      ['Action', 'Recorded when'],
      ACTIONS.map((action) => [`\`${action}\``, ACTION_MEANING[action]]),
    ),
  ].join('\n\n')}\n`
}
