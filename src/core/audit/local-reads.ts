import type { Actor, LocalCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { LocalReads } from '../parts.ts'
import { audit } from './entry.ts'
import { createRecorder } from './recorder.ts'

interface Read {
  readonly actor: Actor<LocalCaller>
  readonly details: { readonly route: string }
}

export function createLocalReads(core: Pick<Core, 'store' | 'ids' | 'log'>): LocalReads {
  const { record, flush } = createRecorder<Read>({
    now: () => core.store.now(),
    write: async ({ actor, details: first }, repeated) => {
      const details = repeated === 0 ? first : { ...first, repeated }
      const entry = audit(core, actor, { action: 'admin.local_access', details })
      await commit(core, actor, [entry], { code: 'audit_unavailable' })
    },
    onKept: (error) =>
      core.log.error({ err: error }, 'local reads could not be recorded; their number is kept'),
  })
  return {
    /** By route and way in, so there are never many. */
    record: (actor, details) => record(`${actor.caller.method} ${details.route}`, { actor, details }),
    flush,
  }
}
