import { type Agent, type AgentEndReason, endOfCredentials } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit, traceOf } from '../audit/entry.ts'
import { agentEnded, requireScope } from '../authentication/authenticate.ts'
import type { Actor, AgentCaller, Caller } from '../caller.ts'
import { commit } from '../commit.ts'
import { requireConfirmed } from '../confirm.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'

type Parts = Pick<Core, 'store' | 'ids'>

/** Deletes by name. Throws `agent_not_found` and `confirmation_required`. */
export async function deleteAgent(
  core: Parts & Pick<Core, 'settings' | 'rates'>,
  actor: Actor,
  name: string,
): Promise<void> {
  const agent = await core.store.agents.findByName(name)
  if (agent === undefined) throw new Problem('agent_not_found')
  await requireConfirmed(core, actor)
  await endAgent(core, actor, agent, 'deleted')
}

/** For an agent that ends as part of another act. Throws `insufficient_scope`. */
export function requireMayEnd(core: Pick<Core, 'denials'>, actor: Actor): void {
  requireScope(core, actor, 'admin:agents:write')
}

/** Deletes the calling agent. Throws `insufficient_scope` for a narrowed token, and `unauthorized` when the agent has already ended. */
export async function deleteSelf(
  core: Parts & Pick<Core, 'denials'>,
  actor: Actor<AgentCaller>,
): Promise<void> {
  requireWhole(core, actor)
  // By id: another agent may have the name by now.
  const agent = await core.store.agents.findLiving(actor.caller.agentId)
  if (agent === undefined) throw agentEnded()
  await endAgent(core, actor, agent, 'deleted')
}

/**
 * Ends the agent's token, runs, credentials and signing key, with all entries, in one commit (decisions.md §5.3). The sweeper
 * revokes upstream afterwards. The credentials and runs of an agent with very many end in the same commit for every reader, and
 * `finishEnds` writes their rows and entries in slices (ADR 0023). Does nothing when the agent has already ended.
 */
export async function endAgent(
  core: Parts,
  actor: Actor<Caller | undefined>,
  agent: Agent,
  how: AgentEndReason,
  more: Step[] = [],
): Promise<void> {
  await commit(core, actor, [...(await endSteps(core, actor, agent, how)), ...more], { urgent: true })
}

/** The steps that end an agent; refused when it has ended. They are few, however many credentials it has. */
export async function endSteps(
  core: Parts,
  actor: Actor<Caller | undefined>,
  agent: Agent,
  how: AgentEndReason,
): Promise<Step[]> {
  const now = core.store.now()
  const reason = endOfCredentials(how)
  const by = traceOf(actor)
  const limit = core.store.endSlice
  const [credentials, runs] = await Promise.all([
    core.store.credentials.countLiving(agent.id, limit + 1),
    core.store.runs.countLiving(agent.id, limit + 1),
  ])
  const hasMany = credentials + runs > limit
  return [
    ...core.store.agents.end(agent.id, how, now),
    ...(hasMany
      ? [core.store.agents.beginEnd({ agentId: agent.id, reason, endedAt: now, by })]
      : [
          ...core.store.runs.endRunsOfAgent(agent.id, { endedAt: now, now, by }),
          ...core.store.credentials.endAll({ agentId: agent.id }, reason, now, by),
        ]),
    ...core.store.enrollments.expireOf(agent.id, now),
    audit(core, actor, {
      action: how === 'expired' ? 'agent.expired' : 'agent.deleted',
      agent,
      ...(how === 'deleted' || how === 'expired' ? {} : { details: { reason: how } }),
    }),
  ]
}
