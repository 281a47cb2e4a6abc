import { nameKey } from '../domain/agent.ts'
import { Problem } from '../domain/problems.ts'
import { audit, traceOf } from './audit-entry.ts'
import { commit } from './commit.ts'
import type { Caller, Core, Origin } from './context.ts'

/**
 * Without `force` only when no credential of it lives: `conflict` otherwise. With it they are ended in the same
 * commit, and the backend stays open behind the scenes until the last is gone upstream. Throws `backend_not_found`.
 */
export async function deleteBackend(
  core: Pick<Core, 'store' | 'ids'>,
  caller: Caller,
  name: string,
  force: boolean,
  origin: Origin,
): Promise<void> {
  const row = await core.store.backends.findByName(nameKey(name))
  if (row === undefined) throw new Problem('backend_not_found')
  if (!force && (await core.store.credentials.countOpenOfBackend(row.uid, 1)) > 0) {
    throw new Problem('conflict', {
      message: 'Credentials of this backend are alive: revoke them, or add ?force=true.',
    })
  }
  const now = core.store.now()
  const by = traceOf(caller, origin)
  const outcome = await commit(
    core,
    [
      ...core.store.backends.end(row.uid, now),
      ...core.store.credentials.endAll({ backend_uid: row.uid }, 'backend_deleted', now, by),
      audit(core, caller, origin, {
        action: 'backend.deleted',
        backend: row.name,
        details: { type: row.type, force },
      }),
    ],
    { urgent: true },
  )
  if (!outcome.done) throw new Problem('backend_not_found')
}
