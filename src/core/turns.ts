import { setImmediate } from 'node:timers/promises'
import type { Caller } from './caller.ts'
import type { Core } from './context.ts'

/** A read that takes longer, in ms, ends its turn of the event loop. */
const LONG_MS = 1

/**
 * Runs a read that may be long after the other reads of the same agent, and gives a long one its own turn of the event
 * loop. However many requests an agent sends at once, other agents wait for one of its reads, not for all of them.
 */
export async function inTurn<T>(
  { serialize }: Pick<Core, 'serialize'>,
  caller: Caller,
  work: () => Promise<T>,
): Promise<T> {
  if (caller.kind !== 'agent') return work()
  return serialize(`read|${caller.agentId}`, async () => {
    const begun = performance.now()
    try {
      return await work()
    } finally {
      if (performance.now() - begun > LONG_MS) await setImmediate()
    }
  })
}
