import type { Agent, AgentGrant } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import { livingGrants } from '../held-scopes.ts'

export interface LivingAgent {
  readonly agent: Agent
  /** Those that have not expired. */
  readonly grants: readonly AgentGrant[]
}

/**
 * An agent that an administrator is about to change; one that has expired is not brought back. A change of the grants raises
 * the version of the agent, which is read first. Throws `agent_not_found`.
 */
export async function findLivingAgent(core: Pick<Core, 'store'>, name: string): Promise<LivingAgent> {
  const agent = await core.store.agents.findByName(name)
  const now = core.store.now()
  if (agent === undefined || (agent.expiresAt !== null && agent.expiresAt <= now))
    throw new Problem('agent_not_found')
  return { agent, grants: livingGrants(await core.store.agents.grantsOf(agent.id), now) }
}

/** How often a change of an agent is decided again because the agent changed in the meantime. */
export const TRIES = 5

export function busyAgent(): Problem {
  return new Problem('conflict', { message: 'The agent is being changed by others; try again.' })
}
