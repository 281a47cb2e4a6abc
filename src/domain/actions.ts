/**
 * The closed list of recorded actions, and when each is recorded (docs/explanation/decisions.md §7.1; ADR 0003 for
 * `requested`, `repeated`, `settled`, `collected` and `token.revoked`, ADR 0013 for `signing_key.used`, ADR 0027 for
 * `agent.changed` and `agent.rotated`).
 */
export const ACTION_MEANING = {
  'credential.requested': 'The server is about to create a credential upstream; recorded before the call.',
  'credential.issued': 'A credential was issued.',
  'credential.repeated':
    'A request repeated under its `Idempotency-Key` received the secret again; `credential.issued` records the first reply.',
  'credential.revoked': 'A credential was revoked; `details.reason` if nobody asked for it.',
  'credential.expired': 'A credential expired.',
  'credential.issue_failed':
    'No credential was issued: refused (`denied`) or failed upstream (`failed`); `details.code` says why. `details.recover` is `none` if nobody can find what that may have left upstream.',
  'credential.revoke_failed':
    'The upstream did not revoke: recorded at the first failure and when the credential is stuck; `details.code` says why.',
  'credential.settled':
    'Nothing of the credential is left at its upstream, or with `details.recover: none` nothing that can be found.',
  'run.started':
    'A run began: what is issued for it ends with it. `details` has its purpose and its heartbeat.',
  'run.ended':
    'A run ended, with all its credentials; `details.reason` is `completed`, `placeholder_misused` (its proxy ended it), `missed_heartbeat`, `ended_by` (an administrator), `agent_ended` or `expired`.',
  'placeholder.misused':
    'A proxy refused a request of a run in which a placeholder stood where it must not; `details` has the authority, the placeholder and the method.',
  'agent.created': 'An agent was created.',
  'agent.deleted':
    'An agent was deleted, with all its credentials; `details.reason` if nobody asked for it: `uncollected`, or `untrusted`, where the entry that it came under is gone from the configuration, or `logged_out`, where its last keyless login ended.',
  'agent.expired': 'An agent expired, with all its credentials.',
  'agent.scopes_changed':
    'The scopes of an agent changed, or temporary scopes ended; `details` has what was added and removed.',
  'agent.changed': 'The expiry, the audiences or the description of an agent changed.',
  'agent.rotated':
    'The token and the client secret of an agent were replaced; `details.previous_until` if the old ones are accepted for a while.',
  'enrollment.requested': 'Somebody asked to become an agent, or an agent asked for more scopes.',
  'enrollment.approved': 'An administrator or a policy approved the request.',
  'enrollment.rejected': 'An administrator rejected the request.',
  'enrollment.expired': 'Nobody decided in time, or nobody collected the answer.',
  'enrollment.collected': 'The agent collected its credentials.',
  'token.issued': 'An access token was issued.',
  'token.refused': 'An access token was refused.',
  'token.revoked': 'An access token was revoked.',
  'signing_key.read': 'An agent fetched its private signing key.',
  'signing_key.used':
    "A commit or tag was signed with an agent's key, which never left the server; `details` has its hash and tree. `denied` if the object names somebody else.",
  'keys.rotated': 'The keys that sign access tokens were replaced.',
  'backend.created': 'A backend was created.',
  'backend.changed': 'A backend was changed; `details.fields` names the fields.',
  'backend.deleted': 'A backend was deleted.',
  'backend.root_rotated':
    'The secrets that Mayfly logs in to an upstream with were replaced; `details.fields` names them, `details.resumed` if an earlier attempt was interrupted.',
  'backend.checked':
    'A backend was checked: Mayfly logged in to its upstream. `details.state` is `up` or `down`, `details.reason` says why.',
  'backend.tried':
    'A backend was tried: Mayfly issued a credential that nobody received, and ended it. `details.failed` names the step that failed, `details.reason` says why; `details.ended` is whether the upstream has ended it.',
  'backend.reconciled':
    'The accounts at an upstream were compared with the credentials; `details` has how many there are and how many have no credential. Each account that was ended for that has an entry `credential.revoked`.',
  'backend.down':
    'The upstream of a backend no longer works; `details.reason` says why. Of several nodes, the first to see it records it.',
  'backend.up': 'The upstream of a backend works again.',
  'backend.root_aged':
    'The secret that Mayfly logs in to an upstream with is older than `rotate_root_after`; `details.set_at` says since when it is there. Once for each secret.',
  'certificate.expiring':
    'The certificate of the server expires within 14 days; `details.expires_at` says when. Once for each certificate.',
  'notification.tested':
    'An administrator sent a test message to a receiver; `failed` if it did not take it.',
  'notification.dropped':
    'A receiver took nothing for a day, so that what is older than a day is no longer sent to it; `details` has the receiver and the number.',
  'plugin.added':
    'A plugin was added, or replaced by other bytes; `details` has its version, its protocol, its SHA-256, where it came from and what it replaced.',
  'plugin.removed': 'A plugin was removed.',
  'plugin.reloaded': 'Backends were reopened: those of a plugin by a new process.',
  'plugin.failed':
    'A plugin could not be added or started, or a process of it ended; `details.reason` says why. Repetitions within a minute are one entry with `details.repeated`.',
  'server.reloaded':
    'The server read its configuration again; `details.changed` names the settings that are others now. `failed` if nothing was changed; `details.faults` has the place of each fault.',
  'operator.invited':
    'Somebody was invited to become an operator, or to log in again; `details` has the operator and the scopes.',
  'operator.created': 'A person logged in for the first time, and is an operator from then on.',
  'operator.changed':
    'The name or the scopes of an operator changed; `details` has what was added and removed.',
  'operator.deleted': 'An operator was removed, with all their sessions, passkeys and links.',
  'operator.link_made':
    "A link was made on the server's own machine that logs an operator in once; `details.kind` is `first` where there was none.",
  'session.allowed':
    'An operator allowed a command to act as them; `details` has the host and the address that asked. `session.started` follows when it comes for its token.',
  'session.denied': 'An operator denied a command that asked to act as them.',
  'session.started':
    'An operator logged in; `details.method` says how, and of a command `details.allowed_by` which session allowed it.',
  'session.ended': 'A session of an operator ended; `details.reason` says why.',
  'passkey.added': 'An operator registered a passkey; `details` has its public key.',
  'passkey.removed': 'A passkey of an operator was removed, and the sessions that it had started ended.',
  'audit.exported':
    'Somebody began to download the audit as a file; `details` has its format and the filters.',
  'admin.local_access':
    "Somebody on the server's own host read what needs an admin scope, or was refused a change, without an agent's token. Once a minute for each route; repetitions are one entry with `details.repeated`. A change has its own entry instead.",
  'auth.failed':
    'A token was invalid or lacked a scope. A flood of equal failures is one entry a minute with `details.repeated`.',
} as const

export type Action = keyof typeof ACTION_MEANING

export const ACTIONS = Object.keys(ACTION_MEANING) as readonly Action[]
