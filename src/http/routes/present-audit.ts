import type { AuditPage } from '../../core/audit/query-audit.ts'
import { formatDuration } from '../../domain/duration.ts'
import { ID_PREFIX } from '../../domain/ids.ts'
import { timestamp } from './wire.ts'

/** One entry as decisions §7.1 has it. */
export function presentEntry(row: AuditPage['entries'][number]) {
  return {
    id: `${ID_PREFIX.audit}${row.id}`,
    timestamp: timestamp(row.at),
    action: row.action,
    outcome: row.outcome,
    agent_id: row.agent_id === '' ? null : row.agent_id,
    agent_name: row.agent_name,
    actor: row.actor,
    backend: row.backend === '' ? null : row.backend,
    credential_id: row.credential_id,
    scopes: parsed(row.scopes),
    ttl: row.ttl_ms === null ? null : formatDuration(row.ttl_ms),
    ip_address: row.ip_address,
    user_agent: row.user_agent,
    auth_method: row.auth_method,
    request_id: row.request_id,
    metadata: parsed(row.metadata),
    details: parsed(row.details),
  }
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json)
}
