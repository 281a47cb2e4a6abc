import { isId } from '../domain/ids.ts'
import type { Core } from './context.ts'

/** Whose the credentials are by which the local host tries backends: no agent may have this name. */
export const LOCAL_HOLDER = 'local'

/** The agent's id, from an id or a name. A name finds its last holder, because ended agents still have entries and credentials. */
export async function findAgentId(core: Pick<Core, 'store'>, agent: string): Promise<string | undefined> {
  return isHolder(agent) ? agent : core.store.agents.lastNamed(agent)
}

/** Also an administrator whose credentials came from trying backends (ADR 0063). No agent has such a name. */
const isHolder = (agent: string) => isId('agent', agent) || isId('operator', agent) || agent === LOCAL_HOLDER

/** A backend in a filter, in the form of entries and credentials. The filter ignores case, as look-up does. */
export async function findBackendName(
  core: Pick<Core, 'store'>,
  name: string | undefined,
): Promise<string | undefined> {
  return name === undefined ? undefined : ((await core.store.backends.spellingOf(name)) ?? name)
}
