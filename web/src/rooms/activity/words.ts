import type { AuditEntry } from '../../../../src/client/wire.ts'
import type { Look } from '../../ui/status.tsx'

export type Action = AuditEntry['action']

/** Each action in words, by what it is about: the timeline and the filter have them. */
export const ACTION_WORDS: Readonly<Record<Action, string>> = {
  'credential.requested': 'Credential requested',
  'credential.issued': 'Credential issued',
  'credential.repeated': 'Credential given again',
  'credential.revoked': 'Credential revoked',
  'credential.expired': 'Credential expired',
  'credential.issue_failed': 'Credential not issued',
  'credential.revoke_failed': 'Upstream did not revoke',
  'credential.settled': 'Gone at the upstream',
  'run.started': 'Run started',
  'run.ended': 'Run ended',
  'placeholder.misused': 'Placeholder misused',
  'agent.created': 'Agent created',
  'agent.deleted': 'Agent deleted',
  'agent.expired': 'Agent expired',
  'agent.scopes_changed': 'Scopes of an agent changed',
  'agent.changed': 'Agent changed',
  'agent.rotated': 'Secrets of an agent replaced',
  'enrollment.requested': 'Request came in',
  'enrollment.approved': 'Request approved',
  'enrollment.rejected': 'Request rejected',
  'enrollment.expired': 'Request expired',
  'enrollment.collected': 'Answer collected',
  'token.issued': 'Access token issued',
  'token.refused': 'Access token refused',
  'token.revoked': 'Access token revoked',
  'signing_key.read': 'Signing key fetched',
  'signing_key.used': 'Commit signed',
  'keys.rotated': 'Signing keys of the server replaced',
  'backend.created': 'Backend added',
  'backend.changed': 'Backend changed',
  'backend.deleted': 'Backend deleted',
  'backend.root_rotated': 'Secret of a backend replaced',
  'backend.checked': 'Backend checked',
  'backend.tried': 'Backend tried',
  'backend.reconciled': 'Accounts at an upstream compared',
  'backend.down': 'Backend is down',
  'backend.up': 'Backend works again',
  'backend.root_aged': 'Secret of a backend is old',
  'certificate.expiring': 'Certificate expires soon',
  'notification.tested': 'Test message sent',
  'notification.dropped': 'Notifications dropped',
  'plugin.added': 'Plugin added',
  'plugin.removed': 'Plugin removed',
  'plugin.reloaded': 'Plugin reloaded',
  'plugin.failed': 'Plugin failed',
  'server.reloaded': 'Configuration read again',
  'operator.invited': 'Operator invited',
  'operator.created': 'Operator joined',
  'operator.changed': 'Operator changed',
  'operator.deleted': 'Operator removed',
  'operator.link_made': 'Login link made',
  'session.started': 'Operator logged in',
  'session.allowed': 'Command allowed to log in',
  'session.denied': 'Command not allowed to log in',
  'session.ended': 'Session ended',
  'passkey.added': 'Passkey registered',
  'passkey.removed': 'Passkey removed',
  'audit.exported': 'Audit downloaded',
  'admin.local_access': 'Local administrator read',
  'auth.failed': 'Not authenticated, or not allowed',
}

/** An action of a newer server is shown by its name. */
export const wordsOf = (action: string): string => ACTION_WORDS[action as Action] ?? action

const NEEDS_A_PERSON: ReadonlySet<string> = new Set(['backend.down', 'placeholder.misused', 'plugin.failed'])
const WAITS: ReadonlySet<string> = new Set([
  'enrollment.requested',
  'backend.root_aged',
  'certificate.expiring',
  'notification.dropped',
])
const ENDS = /\.(revoked|expired|settled|deleted|removed|ended|rejected)$/

export function lookOf({ action, outcome }: Pick<AuditEntry, 'action' | 'outcome'>): Look {
  if (outcome === 'failed' || NEEDS_A_PERSON.has(action)) return 'bad'
  if (outcome === 'denied' || WAITS.has(action)) return 'wait'
  return ENDS.test(action) ? 'off' : 'ok'
}

/** Closed codes and words of `details`, for one line: "ttl_exceeded". */
export function factOf({ details, scopes, action }: AuditEntry): string {
  const said = ['code', 'reason', 'failed', 'state', 'method', 'authority']
    .map((name) => details?.[name])
    .filter((value) => typeof value === 'string')
  const repeated = details?.['repeated']
  const times = typeof repeated === 'number' ? [`${repeated} more times`] : []
  if (said.length > 0 || times.length > 0) return [...said, ...times].join(', ')
  if (action.startsWith('credential.') && action !== 'credential.issued') return ''
  return scopes?.join('  ') ?? ''
}

/** `operator:alice@example.com` → `alice@example.com`; an agent by its name, where the entry has it. */
export function actorOf({ actor, agent_id, agent_name }: AuditEntry): string {
  if (actor.startsWith('operator:')) return actor.slice('operator:'.length)
  if (actor === agent_id && agent_name !== null) return agent_name
  return actor === 'system' ? 'Mayfly' : actor === 'local' ? 'local administrator' : actor
}
