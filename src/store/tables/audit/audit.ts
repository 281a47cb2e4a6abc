import type { Step } from '../../engine/change.ts'
import type { Engine } from '../../engine/engine.ts'
import { run } from '../../engine/run.ts'
import type { AuditRow } from '../../schema/rows.ts'
import type { AuditFilter } from './filter.ts'
import { bounded, newestIds } from './newest.ts'

/**
 * Reading the audit. The indexes are (agent, backend, action, id), (backend, action, id), and three that begin with the
 * actor (`audit-shares.ts`): with every column given they hold the answer in order. Where a column in the middle is
 * not given, its distinct values are few, so they are enumerated by index seeks and the newest of each are merged. No
 * query scans what it does not return, and none uses OFFSET.
 */
export function createAudit(engine: Engine) {
  const { build, read } = engine
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
    /** Ids after that one and before the other, oldest first, and whether a credential on record is what it is about. */
    aged: async (
      after: string,
      before: string,
      limit: number,
    ): Promise<{ id: string; isKept: boolean }[]> => {
      const entries = build.selectFrom('audit').where('id', '>', after).where('id', '<', before)
      const rows = await read<{ id: string; credential: string | null }>(
        entries
          .select((e) => [
            'id',
            // Not a join: that is one look for each entry, whatever PostgreSQL thinks of the two tables.
            e
              .selectFrom('credentials')
              .select('credentials.id')
              .whereRef('credentials.id', '=', 'audit.credential_id')
              .as('credential'),
          ])
          .orderBy('id')
          .limit(limit),
      )
      return rows.map(({ id, credential }) => ({ id, isKept: credential !== null }))
    },
    // Entries are never changed; only retention drops them.
    drop: (ids: readonly string[]): Step => run(build.deleteFrom('audit').where('id', 'in', ids), 'any'),
    dropAbout: (credentialIds: readonly string[], before: string): Step =>
      run(
        build.deleteFrom('audit').where('credential_id', 'in', credentialIds).where('id', '<', before),
        'any',
      ),
  }
}

async function queryEntries(engine: Engine, filter: AuditFilter, limit: number): Promise<AuditRow[]> {
  const { build, read } = engine
  const { agentId, actor, backend, action, credentialId } = filter
  const entries = bounded(build.selectFrom('audit').selectAll(), filter).orderBy('id', 'desc').limit(limit)
  if (credentialId !== undefined) {
    let some = entries.where('credential_id', '=', credentialId)
    if (agentId !== undefined) some = some.where('agent_id', '=', agentId)
    if (actor !== undefined) some = some.where('actor', '=', actor)
    if (backend !== undefined) some = some.where('backend', '=', backend)
    if (action !== undefined) some = some.where('action', '=', action)
    return read<AuditRow>(some)
  }
  if ([agentId, actor, backend, action].every((one) => one === undefined)) return read<AuditRow>(entries)
  const ids = await newestIds(engine, filter, limit)
  if (ids.length === 0) return []
  return read<AuditRow>(build.selectFrom('audit').selectAll().where('id', 'in', ids).orderBy('id', 'desc'))
}
