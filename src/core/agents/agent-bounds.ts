import type { Agent, AgentBounds } from '../../domain/agent.ts'
import { canonicalJson } from '../../domain/formats/canonical-json.ts'
import { type CompiledPolicy, policyBounds, tightest } from '../../domain/policy.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { boundsOf } from '../authentication/callers.ts'
import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'

/**
 * The origin of a new agent's bounds: the policy that decides about its name, if any, and the agent that creates or
 * approves it.
 */
export function createdUnder(
  caller: Caller,
  policy: CompiledPolicy | undefined,
): { readonly policy: string | undefined; readonly bounds: AgentBounds } {
  const parent = caller.kind === 'agent' ? caller : undefined
  return {
    policy: policy?.name ?? parent?.policy ?? undefined,
    bounds: tightest(policy === undefined ? {} : policyBounds(policy), parent?.bounds ?? {}),
  }
}

/**
 * For an act that gives something to an agent, or takes it over: callers must not reach through an agent what they may not
 * have themselves.
 * Throws `insufficient_scope`.
 */
export function requireBounds(core: Pick<Core, 'settings' | 'denials'>, actor: Actor, agent: Agent): void {
  const { caller } = actor
  // Only agents have bounds.
  if (caller.kind !== 'agent') return
  const bounds = boundsOf(core, agent)
  if (isSame(tightest(bounds, caller.bounds), bounds)) return
  core.denials.record(actor, { action: 'auth.failed', details: { reason: 'bounds_wider' } })
  throw new Problem('insufficient_scope', {
    message: 'This agent may have more credentials, or for longer, than you may.',
  })
}

const isSame = (one: AgentBounds, other: AgentBounds) => canonicalJson(one) === canonicalJson(other)

export async function recordBounds(core: Pick<Core, 'store' | 'settings'>): Promise<void> {
  const steps = await boundSteps(core)
  if (steps.length > 0) await core.store.commit(steps)
}

/** Record the bounds of agents that an earlier build admitted, so that they outlast a change of the policy's name. */
export async function boundSteps({ store, settings }: Pick<Core, 'store' | 'settings'>): Promise<Step[]> {
  const names = await store.agents.policiesWithoutBounds()
  return settings.policies
    .filter(({ name }) => names.includes(name))
    .map((policy) => store.agents.setBounds(policy.name, policyBounds(policy)))
}
