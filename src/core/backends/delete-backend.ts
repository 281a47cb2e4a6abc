import { Problem } from '../../domain/problems.ts'
import { audit, traceOf } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { END_SLICE } from '../end-slice.ts'

/**
 * Throws `conflict` while credentials of the backend live. With `force` they are ended, the last of them in the same
 * commit, and the backend stays open internally until the last one is gone upstream. Throws `backend_not_found`.
 */
export async function deleteBackend(
  core: Pick<Core, 'store' | 'ids'>,
  caller: Caller,
  name: string,
  force: boolean,
  origin: Origin,
): Promise<void> {
  const backend = await core.store.backends.findByName(name)
  if (backend === undefined) throw new Problem('backend_not_found')
  const { credentials } = core.store
  const by = traceOf(caller, origin)
  if (force) await endMost(core, caller, backend.uid, by)
  const now = core.store.now()
  const outcome = await commit(
    core,
    caller,
    [
      ...core.store.backends.end(backend.uid, now),
      ...(force
        ? credentials.endAll({ backendUid: backend.uid }, 'backend_deleted', now, by)
        : [core.store.backends.requireIdle(backend.uid)]),
      audit(core, caller, origin, {
        action: 'backend.deleted',
        backend: backend.name,
        details: { type: backend.type, force },
      }),
    ],
    { urgent: true },
  )
  if (outcome.done) return
  if (outcome.step === 0) throw new Problem('backend_not_found')
  throw new Problem('conflict', {
    message: 'This backend has living credentials: revoke them, or add ?force=true.',
  })
}

/**
 * Ends all but the last few before the change that deletes the backend. There may be hundreds of thousands: in one change
 * they would exceed the statement time-out and hold up every other writer.
 */
async function endMost(
  core: Pick<Core, 'store'>,
  caller: Caller,
  uid: string,
  by: ReturnType<typeof traceOf>,
): Promise<void> {
  const { credentials, dialect } = core.store
  const limit = END_SLICE[dialect]
  for (;;) {
    const now = core.store.now()
    const ids = await credentials.activeOfBackend(uid, now, limit)
    if (ids.length < limit) return
    await commit(core, caller, credentials.endSome(ids, 'backend_deleted', now, by), {
      urgent: true,
      bulk: true,
    })
  }
}
