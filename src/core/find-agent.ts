import { nameKey } from '../domain/agent.ts'
import { isId } from '../domain/ids.ts'
import type { Core } from './context.ts'

/** The id itself, or that of whoever has this name or had it last: what an agent did is asked when it is gone, too. */
export async function findAgentId(core: Pick<Core, 'store'>, agent: string): Promise<string | undefined> {
  return isId('agent', agent) ? agent : core.store.agents.lastNamed(nameKey(agent))
}
