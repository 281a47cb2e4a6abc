import type { Core } from '../context.ts'
import type { LastUse } from '../parts.ts'

/** Rows in one commit. */
const BATCH = 200

export function createLastUse(core: Pick<Core, 'store'>): LastUse {
  let unwritten = new Map<string, number>()
  let writing = new Map<string, number>()
  return {
    touch: (agentId, now) => {
      unwritten.set(agentId, now)
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
            all.slice(start, start + BATCH).map(([id, at]) => core.store.agents.recordUse(id, at)),
          )
        }
      } catch {
        for (const [id, at] of all) if (!unwritten.has(id)) unwritten.set(id, at)
      }
      writing = new Map()
    },
  }
}
