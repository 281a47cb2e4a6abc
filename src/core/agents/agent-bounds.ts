import type { Agent, AgentBounds } from '../../domain/agent.ts'
import { canonicalJson } from '../../domain/canonical-json.ts'
import { type CompiledPolicy, policyBounds, tightest } from '../../domain/policy.ts'
import { Problem } from '../../domain/problems.ts'
import { boundsOf } from '../authentication/callers.ts'
import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'

/**
 * What an agent is created under: its policy, if one decides about its name, and the agent that creates or approves it,
 * whose bounds it inherits.
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
 * For an act that gives to an agent, or takes it over: what its caller may not have itself must not be reached through it.
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

/** Records the bounds of agents that an earlier build admitted, so that they outlast a change of the policy's name. */
export async function recordBounds({ store, settings }: Pick<Core, 'store' | 'settings'>): Promise<void> {
  const names = await store.agents.policiesWithoutBounds()
  const steps = settings.policies
    .filter(({ name }) => names.includes(name))
    .map((policy) => store.agents.setBounds(policy.name, policyBounds(policy)))
  if (steps.length > 0) await store.commit(steps)
}
