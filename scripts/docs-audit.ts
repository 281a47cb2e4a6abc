import type { AuditEntry } from '../src/api/api-v1.ts'
import { ACTIONS, type Action } from '../src/domain/actions.ts'
import { MADE, table } from './markdown.ts'

/** When each action is recorded. An action without a line here does not compile. */
const ACTION_MEANING: Readonly<Record<Action, string>> = {
  'credential.requested': 'Mayfly is about to create a credential upstream. Recorded before it asks.',
  'credential.issued': 'A credential was issued.',
  'credential.repeated':
    'A request repeated with its `Idempotency-Key` got the secret again. `credential.issued` names the first request.',
  'credential.revoked': 'A credential was revoked. `details.reason` says why if nobody asked for it.',
  'credential.expired': 'A credential expired.',
  'credential.issue_failed':
    'No credential was issued: refused (`denied`) or failed upstream (`failed`). `details.code` says why.',
  'credential.revoke_failed':
    'The upstream system did not revoke. Recorded at the first failure and when the credential is stuck; `details.code` says why.',
  'credential.settled': 'Nothing of the credential is left upstream.',
  'agent.created': 'An agent was created.',
  'agent.deleted': 'An agent was deleted, with everything it held.',
  'agent.expired': 'An agent expired, with everything it held.',
  'agent.scopes_changed': 'An agent got more scopes, or lost scopes that it held for a time.',
  'enrollment.requested': 'A new agent asked to enroll, or an agent asked for more scopes.',
  'enrollment.approved': 'An administrator or a policy approved.',
  'enrollment.rejected': 'An administrator rejected.',
  'enrollment.expired': 'Nobody decided in time, or nobody collected the answer.',
  'enrollment.collected': 'The agent collected its login.',
  'token.issued': 'An access token was issued.',
  'token.refused': 'A request for an access token was refused.',
  'token.revoked': 'An access token was revoked.',
  'signing_key.read': 'An agent fetched its private signing key.',
  'signing_key.used':
    'The server signed a commit or tag with the key of an agent; `details` has its hash and its tree. Refused (`denied`) if it names another author.',
  'keys.rotated': 'The keys that sign access tokens were replaced.',
  'backend.created': 'A backend was created.',
  'backend.changed': 'A backend was changed; `details.fields` lists the fields.',
  'backend.deleted': 'A backend was deleted.',
  'plugin.reloaded': 'The backends were reopened.',
  'admin.local_access': 'The local host administered the server without an agent’s token.',
  'auth.failed':
    'A token was invalid, or lacked a scope. A flood of the same failure is one entry a minute with `details.repeated`.',
}

const FIELD_MEANING: Readonly<Record<keyof typeof AuditEntry.properties, string>> = {
  id: 'Ordered by time.',
  timestamp: 'RFC 3339, UTC, milliseconds.',
  action: 'One of the actions below.',
  outcome: '`ok`, `denied` or `failed`.',
  agent_id: 'The agent that the entry is about.',
  agent_name: 'Its name at the time.',
  actor: 'Who did it: the id of an agent, `local` or `system`.',
  backend: 'The backend, if there is one.',
  credential_id: 'The credential, if there is one.',
  scopes: 'The scopes that were requested or granted.',
  ttl: 'The lifetime that was requested.',
  ip_address: 'The address of the caller.',
  user_agent: 'What the caller calls itself; control characters are escaped.',
  auth_method: '`opaque`, `jwt`, `loopback`, `admin_token`, `unix_socket` or a client authentication.',
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
