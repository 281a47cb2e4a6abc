import type { AuditEntry } from '../src/api/api-v1.ts'
import { ACTIONS, type Action } from '../src/domain/actions.ts'
import { MADE, table } from './markdown.ts'

/** When each is recorded. An action without a line here does not compile. */
const ACTION_MEANING: Readonly<Record<Action, string>> = {
  'credential.requested': 'A credential is about to be made at an upstream: recorded before it is.',
  'credential.issued': 'A credential was handed out.',
  'credential.repeated':
    'A request repeated under its `Idempotency-Key` was told the secret again; `credential.issued` has who was told it first.',
  'credential.revoked': 'A credential was ended before its time; `details.reason` where nobody asked for it.',
  'credential.expired': 'A credential reached its end.',
  'credential.issue_failed':
    'None was issued: refused (`denied`) or failed upstream (`failed`); `details.code` says why.',
  'credential.revoke_failed':
    'The upstream did not revoke: once at the first failure, once when it is stuck; `details.code` says why.',
  'credential.settled': 'What a credential had at its upstream is gone.',
  'agent.created': 'An agent was made.',
  'agent.deleted': 'An agent was deleted, with all that it had.',
  'agent.expired': 'An agent reached its end, with all that it had.',
  'agent.scopes_changed': 'An agent got more scopes, or lost what it had for a time.',
  'enrollment.requested': 'Somebody asked to become an agent, or an agent for more scopes.',
  'enrollment.approved': 'An administrator or a policy said yes.',
  'enrollment.rejected': 'An administrator said no.',
  'enrollment.expired': 'Nobody decided in time, or nobody came for the answer.',
  'enrollment.collected': 'The agent fetched its credentials.',
  'token.issued': 'An access token was signed.',
  'token.refused': 'No access token was given.',
  'token.revoked': 'An access token was ended before its time.',
  'signing_key.read': 'An agent fetched its private signing key.',
  'signing_key.used':
    'A commit or tag was signed with the key of an agent, which stayed here; `details` has its hash and its tree. Refused (`denied`) when it names somebody else.',
  'keys.rotated': 'The keys that sign access tokens were replaced.',
  'backend.created': 'A backend was configured.',
  'backend.changed': 'A backend was changed; `details.fields` names what.',
  'backend.deleted': 'A backend was deleted.',
  'plugin.reloaded': 'Backends were opened anew.',
  'admin.local_access': 'Somebody on the server’s own host administered without an agent’s token.',
  'auth.failed':
    'A token was not good, or lacked a scope. A flood of the same is one entry a minute with `details.repeated`.',
}

const FIELD_MEANING: Readonly<Record<keyof typeof AuditEntry.properties, string>> = {
  id: 'Time-ordered.',
  timestamp: 'RFC 3339, UTC, milliseconds.',
  action: 'One of the actions below.',
  outcome: '`ok`, `denied` or `failed`.',
  agent_id: 'The agent that it is about.',
  agent_name: 'Its name at the time.',
  actor: 'Who did it: the id of an agent, `local` or `system`.',
  backend: 'The backend, where there is one.',
  credential_id: 'The credential, where there is one.',
  scopes: 'The scopes that were asked or granted.',
  ttl: 'The lifetime that was asked.',
  ip_address: 'Where it came from.',
  user_agent: 'What the caller calls itself; control characters escaped.',
  auth_method: '`opaque`, `jwt`, `loopback`, `admin_token`, `unix_socket` or a client authentication.',
  request_id: 'That of `X-Request-Id`.',
  metadata: 'What the caller gave for the record.',
  details: 'What this action alone has to say.',
}

/** docs/reference/audit.md. */
export function renderAuditPage(): string {
  return `${[
    MADE,
    '# The audit',
    'What is acknowledged is recorded: the entry is committed together with what it records, and where it cannot be written nothing is issued. Entries are never changed. An agent reads its own with `GET /api/v1/audit`; `admin:audit:read` and the local host read all, also at `GET /v1/admin/audit`.',
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
