import type { UnfinishedEnd } from '../../store/tables/agent-ends.ts'
import { SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

const BATCH = 100

/**
 * Ends the credentials and runs of agents that ended with very many of them, slice by slice, each with its entry. Every reader has
 * seen them ended since the agent did; a crash or a full disk in between loses none, because the agent stays noted.
 */
export async function finishEnds(core: Pick<Core, 'store'>, signal: AbortSignal): Promise<void> {
  for (const end of await core.store.agents.unfinishedEnds(BATCH)) await finishEnd(core, end, signal)
}

async function finishEnd(
  core: Pick<Core, 'store'>,
  { agentId, reason, endedAt, by }: UnfinishedEnd,
  signal: AbortSignal,
): Promise<void> {
  const { agents, credentials, runs, endSlice: limit, now } = core.store
  while (!signal.aborted) {
    const ids = await credentials.leftOf({ agentId }, endedAt, limit)
    // Their runs once no credential is left.
    const some = ids.length === 0 ? await runs.livingOf(agentId, limit) : []
    const isLast = ids.length === 0 && some.length < limit
    const change = [
      ...(ids.length === 0 ? [] : credentials.endLate(ids, { reason, endedAt, now: now(), by })),
      ...(some.length === 0 ? [] : runs.endRunsOfAgent(agentId, { endedAt, now: now(), by }, some)),
      ...(isLast ? [agents.finishEnd(agentId)] : []),
    ]
    const { done } = await commit(core, SYSTEM, change, { urgent: true, bulk: true })
    // Refused if something else ended one of them in the meantime, perhaps another node: look again.
    if (done && isLast) return
  }
}
