import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endAgent } from './end-agent.ts'

const BATCH = 100

/** Ends agents past their expiry as if they were deleted, with everything they have (decisions.md §5.3). */
export async function reapAgents(core: Pick<Core, 'store' | 'ids'>, signal: AbortSignal): Promise<void> {
  for (;;) {
    const expired = await core.store.agents.expired(core.store.now(), BATCH)
    for (const agent of expired) {
      if (signal.aborted) return
      await endAgent(core, SYSTEM, agent, 'expired')
    }
    if (expired.length < BATCH) return
  }
}
