import type { AgentUse } from '../../store/tables/agents.ts'
import type { Core } from '../context.ts'
import type { LastUse } from '../parts.ts'

/** Rows in one commit. */
const BATCH = 200

export function createLastUse(core: Pick<Core, 'store'>): LastUse {
  let unwritten = new Map<string, AgentUse>()
  let writing = new Map<string, AgentUse>()
  return {
    touch: (agentId, use) => {
      unwritten.set(agentId, use)
    },
    get: (agentId) => unwritten.get(agentId) ?? writing.get(agentId),
    async flush() {
      if (unwritten.size === 0) return
      writing = unwritten
      unwritten = new Map()
      const all = [...writing]
      try {
        for (let start = 0; start < all.length; start += BATCH) {
          await core.store.commit(
            all.slice(start, start + BATCH).map(([id, use]) => core.store.agents.recordUse(id, use)),
          )
        }
      } catch {
        for (const [id, use] of all) if (!unwritten.has(id)) unwritten.set(id, use)
      }
      writing = new Map()
    },
  }
}
