import type { AuditTrace } from '../../domain/audit-entry.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'

/** One entry, as a step of the change that it records. */
export function audit(
  core: Pick<Core, 'ids' | 'store'>,
  actor: Actor<Caller | undefined>,
  entry: Entry,
): Step {
  const { caller } = actor
  const own = caller?.kind === 'agent' ? { id: caller.agentId, name: caller.agentName } : null
  const agent = entry.agent === undefined ? own : entry.agent
  // The id is of the same ms: `since` and `until` look at ids, and people copy the time into them.
  const at = entry.at ?? core.store.now()
  return core.store.audit.record({
    ...traceOf(actor),
    id: core.ids.body(at),
    at,
    action: entry.action,
    outcome: entry.outcome ?? 'ok',
    agentId: agent?.id ?? null,
    agentName: agent?.name ?? null,
    backend: entry.backend ?? null,
    credentialId: entry.credentialId ?? null,
    runId: entry.runId === undefined ? runOf(caller) : entry.runId,
    scopes: entry.scopes ?? null,
    ttlMs: entry.ttlMs ?? null,
    metadata: entry.metadata ?? null,
    details:
      caller?.kind === 'operator'
        ? { ...entry.details, actor_id: caller.operatorId }
        : (entry.details ?? null),
  })
}

function runOf(caller: Caller | undefined): string | null {
  return caller?.kind === 'agent' ? (caller.run?.id ?? null) : null
}

/** Who did it and from where: also for the entries that the store writes itself, many at once. */
export function traceOf(actor: Actor<Caller | undefined>): AuditTrace {
  const { caller, origin } = actor
  return {
    actor: actorId(actor),
    ipAddress: origin.ipAddress,
    userAgent: origin.userAgent,
    authMethod: caller?.method ?? null,
    requestId: origin.requestId === '' ? null : origin.requestId,
  }
}

/** The actor in the form of entries and rows. */
export function actorId({ caller }: Actor<Caller | undefined>): string {
  if (caller === undefined) return 'system'
  switch (caller.kind) {
    case 'agent':
      return caller.agentId
    case 'operator':
      return caller.actor
    case 'local':
      return 'local'
  }
}
