import { setImmediate } from 'node:timers/promises'
import type { Caller } from './caller.ts'
import type { Core } from './context.ts'

/**
 * Runs a read that may be long after the other ones of the same agent, each in a turn of the event loop of its own. However many
 * requests one agent sends at once, the others wait for one of its reads, not for all of them.
 */
export async function inTurn<T>(
  { serialize }: Pick<Core, 'serialize'>,
  caller: Caller,
  work: () => Promise<T>,
): Promise<T> {
  if (caller.kind !== 'agent') return work()
  return serialize(`read|${caller.agentId}`, async () => {
    try {
      return await work()
    } finally {
      await setImmediate()
    }
  })
}
