import { Problem } from '../../domain/problems.ts'
import type { Caller } from '../caller.ts'

/** Long replies that run at once: so many of one caller, and so many of this node. */
export interface Places {
  /** Returns what gives the place back; more than once does no harm. Throws `rate_limited`. */
  take(caller: Caller): () => void
}

export function createPlaces(perCaller: number, total: number, what: string): Places {
  const taken = new Map<string, number>()
  let all = 0
  return {
    take(caller) {
      const key = keyOf(caller)
      const own = taken.get(key) ?? 0
      if (own >= perCaller || all >= total) {
        const whose = own >= perCaller ? 'of yours' : 'of this server'
        throw new Problem('rate_limited', {
          message: `Too many ${what} ${whose} are open; close one of them.`,
          retryAfterSeconds: 5,
        })
      }
      taken.set(key, own + 1)
      all += 1
      let isTaken = true
      return () => {
        if (!isTaken) return
        isTaken = false
        all -= 1
        const left = (taken.get(key) ?? 1) - 1
        if (left === 0) taken.delete(key)
        else taken.set(key, left)
      }
    },
  }
}

/** The session or the agent; all of the local host together. */
export function keyOf(caller: Caller): string {
  switch (caller.kind) {
    case 'agent':
      return caller.agentId
    case 'operator':
      return caller.session.id
    case 'local':
      return 'local'
  }
}
