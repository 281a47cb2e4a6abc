import type { Actor, LocalCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { LocalReads } from '../parts.ts'
import { audit } from './entry.ts'

const WINDOW_MS = 60_000

interface Seen {
  readonly since: number
  readonly actor: Actor<LocalCaller>
  readonly details: { readonly route: string }
  /** The entry of the first read. */
  readonly written: Promise<void>
  /** Reads since then. A kill of the process loses this number, and nothing else (ADR 0032). */
  repeated: number
}

export function createLocalReads(core: Pick<Core, 'store' | 'ids' | 'log'>): LocalReads {
  /** By route and way in, so there are never many. */
  const seen = new Map<string, Seen>()

  async function write(one: Pick<Seen, 'actor' | 'details'>, repeated: number): Promise<void> {
    const details = repeated === 0 ? one.details : { ...one.details, repeated }
    const entry = audit(core, one.actor, { action: 'admin.local_access', details })
    await commit(core, one.actor, [entry], { code: 'audit_unavailable' })
  }

  return {
    async record(actor, details) {
      const now = core.store.now()
      const key = `${actor.caller.method} ${details.route}`
      const known = seen.get(key)
      if (known !== undefined && isWithinWindow(known, now)) {
        known.repeated += 1
        // Reads at the same time as the first wait for its entry, too.
        return known.written
      }
      const written = write({ actor, details }, known?.repeated ?? 0)
      seen.set(key, { since: now, actor, details, written, repeated: 0 })
      try {
        await written
      } catch (error) {
        if (known === undefined) seen.delete(key)
        else seen.set(key, known)
        throw error
      }
    },
    async flush(now) {
      for (const [key, one] of [...seen]) {
        if (isWithinWindow(one, now)) continue
        seen.delete(key)
        if (one.repeated === 0) continue
        try {
          await write(one, one.repeated)
        } catch (error) {
          core.log.error({ err: error }, 'local reads could not be recorded; their number is kept')
          keep(key, one)
        }
      }
    },
  }

  /** For the next flush, or the next read of this route. */
  function keep(key: string, one: Seen): void {
    const newer = seen.get(key)
    if (newer === undefined) seen.set(key, one)
    else newer.repeated += one.repeated
  }
}

/** Not so after the clock was set back: the summary would wait for the old time to return. */
function isWithinWindow({ since }: Seen, now: number): boolean {
  return now >= since && now - since < WINDOW_MS
}
