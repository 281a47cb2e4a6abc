import { bounded, newestIds } from './audit-newest.ts'
import type { Step } from './change.ts'
import type { Engine } from './engine.ts'
import { run } from './run.ts'
import type { AuditRow } from './schema.ts'

export interface AuditFilter {
  agentId?: string | undefined
  backend?: string | undefined
  action?: string | undefined
  credentialId?: string | undefined
  /** Id bodies: from this one on, and before that one. */
  from?: string | undefined
  before?: string | undefined
}

/**
 * Reading the audit. The two indexes are (agent, backend, action, id) and (backend, action, id): with every
 * column given they hold the answer in order. Where a column in the middle is not given, its distinct values
 * are few, so they are enumerated by index seeks and the newest of each are merged. No query scans what it does
 * not return, and none uses OFFSET.
 */
export function createAudit(engine: Engine) {
  const query = (filter: AuditFilter, limit: number) => queryEntries(engine, filter, limit)
  return {
    /** Newest first. */
    query,
    /** The credentials that such entries are about, newest entry first, with the entry's id as cursor. */
    credentialsOf: async (
      filter: AuditFilter,
      limit: number,
    ): Promise<{ id: string; credential_id: string | null }[]> =>
      (await query(filter, limit)).map((row) => ({ id: row.id, credential_id: row.credential_id })),
    /**
     * Ids of the oldest before that id, without those about a credential that has not come to its end: how it was
     * issued is asked for as long as it lives. Entries are never changed; only retention drops them.
     */
    oldest: async (before: string, limit: number): Promise<string[]> => {
      const entries = engine.build
        .selectFrom('audit')
        .select('id')
        .where('id', '<', before)
        .where((e) =>
          e.not(
            e.exists(
              e
                .selectFrom('credentials')
                .select('credentials.id')
                .whereRef('credentials.id', '=', 'audit.credential_id')
                .where('credentials.settled_at', 'is', null),
            ),
          ),
        )
      return (await engine.read<{ id: string }>(entries.orderBy('id').limit(limit))).map((row) => row.id)
    },
    drop: (ids: readonly string[]): Step =>
      run(engine.build.deleteFrom('audit').where('id', 'in', ids), 'any'),
  }
}

async function queryEntries(engine: Engine, filter: AuditFilter, limit: number): Promise<AuditRow[]> {
  const { build, read } = engine
  const { agentId, backend, action, credentialId } = filter
  const entries = bounded(build.selectFrom('audit').selectAll(), filter).orderBy('id', 'desc').limit(limit)
  if (credentialId !== undefined) {
    let some = entries.where('credential_id', '=', credentialId)
    if (agentId !== undefined) some = some.where('agent_id', '=', agentId)
    if (backend !== undefined) some = some.where('backend', '=', backend)
    if (action !== undefined) some = some.where('action', '=', action)
    return read<AuditRow>(some)
  }
  if (agentId === undefined && backend === undefined && action === undefined) return read<AuditRow>(entries)
  const ids = await newestIds(engine, filter, limit)
  if (ids.length === 0) return []
  return read<AuditRow>(build.selectFrom('audit').selectAll().where('id', 'in', ids).orderBy('id', 'desc'))
}
