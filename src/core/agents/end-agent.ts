import { nameKey } from '../../domain/agent.ts'
import type { EndReason } from '../../domain/credential.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { AgentRow } from '../../store/schema/rows.ts'
import { audit, traceOf } from '../audit/entry.ts'
import { agentEnded, requireWhole } from '../authentication/authenticate.ts'
import type { AgentCaller, Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'ids'>

const REASONS = {
  deleted: ['agent.deleted', 'agent_deleted'],
  expired: ['agent.expired', 'agent_expired'],
  uncollected: ['agent.deleted', 'agent_deleted'],
} as const satisfies Record<string, readonly [string, EndReason]>

/** Deletes by name. Throws `agent_not_found`. */
export async function deleteAgent(core: Parts, caller: Caller, name: string, origin: Origin): Promise<void> {
  const row = await core.store.agents.findByName(nameKey(name))
  if (row === undefined) throw new Problem('agent_not_found')
  await endAgent(core, row, 'deleted', caller, origin)
}

/** The agent's own end. Throws `insufficient_scope` for a narrowed token, and `unauthorized` when it has ended already. */
export async function deleteSelf(
  core: Parts & Pick<Core, 'denials'>,
  caller: AgentCaller,
  origin: Origin,
): Promise<void> {
  requireWhole(core, caller, origin)
  // By its id: its name may be another's by now.
  const row = await core.store.agents.findLiving(caller.agentId)
  if (row === undefined) throw agentEnded()
  await endAgent(core, row, 'deleted', caller, origin)
}

/**
 * Token dead, every credential ended, signing key gone, all with their entries in one commit (decisions §5.3);
 * what that means upstream follows. Does nothing when somebody else has ended it first.
 */
export async function endAgent(
  core: Parts,
  row: AgentRow,
  how: keyof typeof REASONS,
  caller: Caller | undefined,
  origin: Origin,
  more: Step[] = [],
): Promise<void> {
  const now = core.store.now()
  const [action, reason] = REASONS[how]
  const by = traceOf(caller, origin)
  const change: Step[] = [
    ...core.store.agents.end(row.id, how, now),
    ...core.store.credentials.endAll({ agent_id: row.id }, reason, now, by),
    ...core.store.enrollments.expireOf(row.id, now),
    ...more,
    audit(core, caller, origin, {
      action,
      agent: row,
      ...(how === 'uncollected' ? { details: { reason: how } } : {}),
    }),
  ]
  await commit(core, change, { urgent: true })
}
