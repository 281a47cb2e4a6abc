import type { AuditEntry } from '../src/api/api-v1.ts'
import { ACTION_MEANING, ACTIONS } from '../src/domain/actions.ts'
import { MADE, table } from './markdown.ts'

const FIELD_MEANING: Readonly<Record<keyof typeof AuditEntry.properties, string>> = {
  id: 'Ordered by time.',
  timestamp: 'RFC 3339, UTC, milliseconds.',
  action: 'One of the actions below.',
  outcome: '`ok`, `denied` or `failed`.',
  agent_id: 'The agent that the entry is about.',
  agent_name: 'Its name at the time.',
  actor:
    'Who did it: the id of an agent, `operator:` and an e-mail address (the id of the operator is `details.actor_id`), `local` or `system`.',
  backend: 'The backend, if there is one.',
  credential_id: 'The credential, if there is one.',
  run: 'The run that the entry is about, or that the caller acted for, if there is one.',
  scopes: 'The scopes that were requested or granted.',
  ttl: 'The lifetime that was requested.',
  ip_address: 'The address of the caller.',
  user_agent: 'What the caller calls itself; control characters are escaped.',
  auth_method:
    '`opaque`, `jwt`, `loopback`, `unix_socket`, `quickstart`, `identity` (a keyless login) or a client authentication.',
  request_id: 'The id in `X-Request-Id`.',
  metadata: 'What the caller sent for the record.',
  details: 'Data that only this action has.',
}

/** docs/reference/audit.md. */
export function renderAuditPage(): string {
  return `${[
    MADE,
    '# The audit',
    'Mayfly records every change that it acknowledges. The entry is in the same commit as the change; if the entry cannot be written, nothing is issued. Entries are never changed. An agent reads its own entries at `GET /api/v1/audit`. The scope `admin:audit:read` and the local host read all of them, also at `GET /v1/admin/audit` and with `mayfly audit`.',
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
