import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import type { Denials, Entry } from '../parts.ts'
import { audit } from './entry.ts'

const WINDOW_MS = 60_000
const MAX_KEYS = 10_000

interface Seen {
  since: number
  count: number
  actor: Actor<Caller | undefined>
  entry: Entry
}

export function createDenials(core: Pick<Core, 'store' | 'ids' | 'log'>): Denials {
  const seen = new Map<string, Seen>()

  async function write(one: Pick<Seen, 'actor' | 'entry'>): Promise<void> {
    try {
      await core.store.commit([audit(core, one.actor, { outcome: 'denied', ...one.entry })])
    } catch (error) {
      core.log.error({ err: error }, 'a denial could not be recorded')
    }
  }

  async function summarise(one: Seen): Promise<void> {
    if (one.count === 0) return
    const details = { ...one.entry.details, repeated: one.count }
    await write({ ...one, entry: { ...one.entry, details } })
  }

  /** Makes room; the count of the oldest is still recorded. */
  function dropOldest(): void {
    for (const [key, one] of seen) {
      seen.delete(key)
      void summarise(one)
      return
    }
  }

  return {
    record(actor, entry) {
      const now = core.store.now()
      const key = keyOf(entry, actor)
      const known = seen.get(key)
      if (known !== undefined && isWithinWindow(known, now)) {
        known.count += 1
        return
      }
      if (seen.size >= MAX_KEYS && known === undefined) dropOldest()
      seen.set(key, { since: now, count: 0, actor, entry })
      const repeated =
        known === undefined || known.count === 0
          ? {}
          : { details: { ...entry.details, repeated: known.count } }
      void write({ actor, entry: { ...entry, ...repeated } })
    },
    async flush(now) {
      for (const [key, one] of seen) {
        if (isWithinWindow(one, now)) continue
        seen.delete(key)
        await summarise(one)
      }
    },
  }
}

/** Not so after the clock was set back: the summary would wait for the old time to return. */
function isWithinWindow({ since }: Seen, now: number): boolean {
  return now >= since && now - since < WINDOW_MS
}

/**
 * Different refusals have different keys, and so do different agents, which are known ones. Nothing else that the client
 * sends, and not the host part of its address, makes a new key.
 */
function keyOf(
  { action, agent, backend, details }: Entry,
  { caller, origin }: Actor<Caller | undefined>,
): string {
  const why = `${details?.['code'] ?? ''}|${details?.['reason'] ?? ''}|${details?.['route'] ?? ''}|${backend ?? ''}`
  const who = `${caller?.kind === 'agent' ? caller.agentId : ''}|${agent?.id ?? ''}`
  return `${action}|${who}|${networkOf(origin.ipAddress)}|${why}`
}
