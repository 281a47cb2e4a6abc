import { nameKey } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import { audit, traceOf } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

/**
 * Without `force` only when no credential of it lives: `conflict` otherwise. With it they are ended, the last of them in
 * the same commit, and the backend stays open behind the scenes until the last is gone upstream. Throws `backend_not_found`.
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
  const { credentials } = core.store
  const by = traceOf(caller, origin)
  if (force) await endMost(core, row.uid, by)
  const now = core.store.now()
  const outcome = await commit(
    core,
    [
      ...core.store.backends.end(row.uid, now),
      ...(force
        ? credentials.endAll({ backend_uid: row.uid }, 'backend_deleted', now, by)
        : [core.store.backends.requireIdle(row.uid)]),
      audit(core, caller, origin, {
        action: 'backend.deleted',
        backend: row.name,
        details: { type: row.type, force },
      }),
    ],
    { urgent: true },
  )
  if (outcome.done) return
  if (outcome.step === 0) throw new Problem('backend_not_found')
  throw new Problem('conflict', {
    message: 'Credentials of this backend are alive: revoke them, or add ?force=true.',
  })
}

/** Rows of one commit: SQLite has one writer, for whom others wait; on PostgreSQL a larger slice spares round trips. */
const SLICE = { sqlite: 500, postgres: 2_500 }

/**
 * There may be hundreds of thousands. In one change they would take longer than a statement may, and meanwhile hold up
 * whoever writes; so all but the last few are ended before it.
 */
async function endMost(
  core: Pick<Core, 'store'>,
  uid: string,
  by: ReturnType<typeof traceOf>,
): Promise<void> {
  const { credentials, dialect } = core.store
  const limit = SLICE[dialect]
  for (;;) {
    const now = core.store.now()
    const ids = await credentials.activeOfBackend(uid, now, limit)
    if (ids.length < limit) return
    await commit(core, credentials.endSome(ids, 'backend_deleted', now, by), { urgent: true, bulk: true })
  }
}
