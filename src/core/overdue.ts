import { setTimeout as wait } from 'node:timers/promises'
import { Problem } from '../domain/problems.ts'
import { retryDelay } from '../domain/retry-delay.ts'
import type { Change } from '../store/engine/change.ts'
import type { Core } from './context.ts'
import type { Overdue } from './parts.ts'

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 5_000

/** The entry keeps its id, by which an earlier try is known. */
const withSameId = (change: Change): Change =>
  change.map((step) => {
    if (step.op !== 'insert') return step
    const { movable: _, ...same } = step
    return same
  })

export function createOverdue(core: Pick<Core, 'store' | 'log'>): Overdue {
  const waiting = new Map<string, Promise<void>>()
  const closing = new AbortController()

  async function insist(credential: string, change: Change): Promise<void> {
    for (let attempts = 1; ; attempts += 1) {
      const ms = retryDelay(attempts, Math.random(), FIRST_WAIT_MS, LONGEST_WAIT_MS)
      await wait(ms, undefined, { signal: closing.signal }).catch(() => undefined)
      const isLast = closing.signal.aborted
      try {
        // Refused as not unique: an earlier try was kept although its reply was lost.
        await core.store.commit(change, { urgent: true })
        return
      } catch (error) {
        const isPassing = error instanceof Problem && error.code === 'store_unavailable'
        if (!isPassing || isLast) {
          core.log.error(
            { err: error, credential },
            'the store did not take the end of a credential; its record may call it active until it expires',
          )
          return
        }
      }
    }
  }

  return {
    add(credential, change) {
      const done = insist(credential, withSameId(change)).finally(() => waiting.delete(credential))
      waiting.set(credential, done)
    },
    has: (credential) => waiting.has(credential),
    async close() {
      closing.abort()
      await Promise.all(waiting.values())
    },
  }
}
