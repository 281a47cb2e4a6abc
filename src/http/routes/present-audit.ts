import type { AuditEntry } from '../../domain/audit-entry.ts'
import { formatDuration } from '../../domain/duration.ts'
import { ID_PREFIX } from '../../domain/ids.ts'
import { timestamp } from './wire.ts'

/** One entry in the wire format of decisions.md §7.1. */
export function presentEntry(entry: AuditEntry) {
  return {
    id: `${ID_PREFIX.audit}${entry.id}`,
    timestamp: timestamp(entry.at),
    action: entry.action,
    outcome: entry.outcome,
    agent_id: entry.agentId,
    agent_name: entry.agentName,
    actor: entry.actor,
    backend: entry.backend,
    credential_id: entry.credentialId,
    run: entry.runId,
    scopes: entry.scopes,
    ttl: entry.ttlMs === null ? null : formatDuration(entry.ttlMs),
    ip_address: entry.ipAddress,
    user_agent: entry.userAgent,
    auth_method: entry.authMethod,
    request_id: entry.requestId,
    metadata: entry.metadata,
    details: entry.details,
  }
}

/** What somebody is shown who may read the things that entries are about, but not the audit. */
export function presentFacts(entry: AuditEntry) {
  const { id, timestamp, action, outcome, ...rest } = presentEntry(entry)
  const { agent_id, agent_name, backend, credential_id, run } = rest
  return { id, timestamp, action, outcome, agent_id, agent_name, backend, credential_id, run }
}
