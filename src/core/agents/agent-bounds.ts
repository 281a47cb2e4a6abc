import type { AgentBounds } from '../../domain/agent.ts'
import { type CompiledPolicy, policyBounds, tightest } from '../../domain/policy.ts'
import type { Caller } from '../caller.ts'
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

/** Records the bounds of agents that an earlier build admitted, so that they outlast a change of the policy's name. */
export async function recordBounds({ store, settings }: Pick<Core, 'store' | 'settings'>): Promise<void> {
  const names = await store.agents.policiesWithoutBounds()
  const steps = settings.policies
    .filter(({ name }) => names.includes(name))
    .map((policy) => store.agents.setBounds(policy.name, policyBounds(policy)))
  if (steps.length > 0) await store.commit(steps)
}
