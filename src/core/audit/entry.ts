import type { Step } from '../../store/engine/change.ts'
import type { AuditRow } from '../../store/schema/rows.ts'
import type { Caller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'

type Parts = Pick<Core, 'ids' | 'store'>

/** One entry as a step of the change that it records. `actor` is the agent's id, `local` or `system`. */
export function audit(core: Parts, caller: Caller | undefined, origin: Origin, entry: Entry): Step {
  return { op: 'insert', table: 'audit', row: auditRow(core, caller, origin, entry) }
}

function auditRow(core: Parts, caller: Caller | undefined, origin: Origin, entry: Entry): AuditRow {
  const own = caller?.kind === 'agent' ? caller : undefined
  return {
    ...traceOf(caller, origin),
    id: core.ids.body(),
    at: core.store.now(),
    action: entry.action,
    outcome: entry.outcome ?? 'ok',
    agent_id: entry.agent?.id ?? own?.agentId ?? '',
    agent_name: entry.agent?.name ?? own?.agentName ?? null,
    backend: entry.backend ?? '',
    credential_id: entry.credentialId ?? null,
    scopes:
      entry.scopes === undefined || typeof entry.scopes === 'string'
        ? (entry.scopes ?? null)
        : JSON.stringify(entry.scopes),
    ttl_ms: entry.ttlMs ?? null,
    metadata: entry.metadata === undefined ? null : JSON.stringify(entry.metadata),
    details: entry.details === undefined ? null : JSON.stringify(entry.details),
  }
}

/** Who did it and from where: the same columns in every entry, whether it is made here or by the set in the store. */
export function traceOf(caller: Caller | undefined, origin: Origin) {
  return {
    actor: actorOf(caller),
    ip_address: origin.ipAddress,
    user_agent: origin.userAgent,
    auth_method: caller?.method ?? null,
    request_id: origin.requestId === '' ? null : origin.requestId,
  }
}

export function actorOf(caller: Caller | undefined): string {
  if (caller === undefined) return 'system'
  return caller.kind === 'agent' ? caller.agentId : 'local'
}
