import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endAgent } from './end-agent.ts'

const BATCH = 100

/** Agents past their expiry end as if deleted, with everything they have (decisions §5.3). */
export async function reapAgents(core: Pick<Core, 'store' | 'ids'>, signal: AbortSignal): Promise<void> {
  for (;;) {
    const expired = await core.store.agents.expired(core.store.now(), BATCH)
    for (const row of expired) {
      if (signal.aborted) return
      await endAgent(core, row, 'expired', undefined, SYSTEM)
    }
    if (expired.length < BATCH) return
  }
}
