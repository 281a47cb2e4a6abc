import type { AuditEntry } from '../../domain/audit-entry.ts'
import type { AuditFilter } from '../../store/tables/audit/filter.ts'
import { type AuditQuestion, readFilter, readPlace } from '../audit/query-audit.ts'
import { requireScope } from '../authentication/authenticate.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Follower, LiveStream } from '../parts.ts'
import { AUDIT_SCOPE, reachOf } from './reach.ts'

export interface LiveQuestion
  extends Pick<AuditQuestion, 'backend' | 'agent' | 'actor' | 'action' | 'credential' | 'run'> {
  /** The id of the last event that arrived. */
  readonly cursor?: string | undefined
}

/**
 * Joins the stream of what happens. `bearer`: what an agent was admitted by. Throws `insufficient_scope`, `rate_limited` and
 * `invalid_request`.
 */
export async function follow(
  core: Pick<Core, 'store' | 'feed' | 'denials'>,
  actor: Actor,
  bearer: string | undefined,
  { cursor, ...question }: LiveQuestion,
  stream: LiveStream,
): Promise<Follower> {
  const { caller } = actor
  const reach = reachOf(caller)
  if (reach === undefined) requireScope(core, actor, AUDIT_SCOPE)
  // What it does not see, it must not find out by a filter.
  if (reach?.isWhole === false && question.actor !== undefined) requireScope(core, actor, AUDIT_SCOPE)
  const after = cursor === undefined ? undefined : readPlace(cursor, 'Last-Event-ID')
  const filter = await readFilter(core, question)
  return core.feed.join({ caller, bearer }, matcherOf(filter), after, stream)
}

/** Undefined: all match. `filter` is undefined if nothing can match. */
function matcherOf(filter: AuditFilter | undefined): ((entry: AuditEntry) => boolean) | undefined {
  if (filter === undefined) return () => false
  const { agentId, actor, backend, action, credentialId, runId } = filter
  if ([agentId, actor, backend, action, credentialId, runId].every((one) => one === undefined))
    return undefined
  return (entry) =>
    (agentId === undefined || entry.agentId === agentId) &&
    (actor === undefined || entry.actor === actor) &&
    (backend === undefined || entry.backend === backend) &&
    (action === undefined || entry.action === action) &&
    (credentialId === undefined || entry.credentialId === credentialId) &&
    (runId === undefined || entry.runId === runId)
}
