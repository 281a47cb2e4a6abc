import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import type { Denials, Entry } from '../parts.ts'
import { actorId, audit } from './entry.ts'
import { createRecorder } from './recorder.ts'

interface Denial {
  readonly actor: Actor<Caller | undefined>
  readonly entry: Entry
}

export function createDenials(core: Pick<Core, 'store' | 'ids' | 'log'>): Denials {
  const { record, flush } = createRecorder<Denial>({
    now: () => core.store.now(),
    write: async ({ actor, entry }, repeated) => {
      const details = repeated === 0 ? entry.details : { ...entry.details, repeated }
      try {
        await core.store.commit([audit(core, actor, { outcome: 'denied', ...entry, details })])
      } catch (error) {
        core.log.error({ err: error }, 'a denial could not be recorded')
      }
    },
  })
  return {
    record: (actor, entry) => void record(keyOf(entry, actor), { actor, entry }),
    flush,
  }
}

/**
 * Each kind of refusal has a key, and so has each known agent and operator. Nothing else that the client sends makes a new key, nor
 * does the host part of its address.
 */
function keyOf(
  { action, agent, backend, details }: Entry,
  { caller, origin }: Actor<Caller | undefined>,
): string {
  // `entries` are names of the configuration.
  const what = `${details?.['reason'] ?? ''}|${details?.['entries'] ?? ''}`
  const why = `${details?.['code'] ?? ''}|${what}|${details?.['route'] ?? ''}|${backend ?? ''}`
  const who = `${caller === undefined ? '' : actorId({ caller, origin })}|${agent?.id ?? ''}`
  return `${action}|${who}|${networkOf(origin.ipAddress)}|${why}`
}
