import type { AuditEntry } from '../../../domain/audit-entry.ts'
import type { Step } from '../../engine/change.ts'
import type { Engine } from '../../engine/engine.ts'
import { insert, run } from '../../engine/run.ts'
import type { AuditRow } from '../../schema/rows.ts'
import { codecs } from '../codecs.ts'
import type { AuditFilter } from './filter.ts'
import { createForward } from './forward.ts'
import { readHorizon } from './horizon.ts'
import { bounded, newestIds } from './newest.ts'
import { readNotable } from './notable.ts'

/**
 * Reading the audit. The indexes are (agent, backend, action, id), (backend, action, id), and three that begin with the
 * actor (`shares.ts`): with every column given they hold the answer in order. A missing column in the middle has few
 * distinct values, so the query enumerates them by index seeks and merges the newest of each. No query reads entries
 * that it does not return, and none uses OFFSET (ADR 0005).
 */
export function createAudit(engine: Engine) {
  const { build, read } = engine
  return {
    append: (entry: AuditEntry): Step => insert('audit', codecs.audit.encode(entry)),
    /** As `append`, for an entry that is written now: its id is of the time at which the store sends it. */
    record: (entry: AuditEntry): Step => ({
      op: 'insert',
      table: 'audit',
      row: codecs.audit.encode(entry),
      movable: true,
    }),
    /** Body of an id: all entries before it are there, or never will be. */
    horizon: (): Promise<string> => readHorizon(engine),
    ...createForward(engine),
    /** The entries after `position` that receivers of notifications may be told of, oldest first. */
    notable: (position: string, limit: number): Promise<AuditEntry[]> => readNotable(engine, position, limit),
    /** Newest first. */
    query: async (filter: AuditFilter, limit: number): Promise<AuditEntry[]> =>
      (await queryRows(engine, filter, limit)).map(codecs.audit.decode),
    /** The credentials that matching entries are about, newest entry first, with the entry's id as cursor. */
    credentialsOf: async (
      filter: AuditFilter,
      limit: number,
    ): Promise<{ id: string; credentialId: string | null }[]> =>
      (await queryRows(engine, filter, limit)).map((row) => ({
        id: row.id,
        credentialId: row.credential_id,
      })),
    /** Ids between `after` and `before`, oldest first; `isKept`: the entry is about a credential that is still stored. */
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
            // A subquery, not a join: it stays one index look-up for each entry, whatever plan PostgreSQL would choose.
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
    // Entries never change; only retention deletes them.
    drop: (ids: readonly string[]): Step => run(build.deleteFrom('audit').where('id', 'in', ids), 'any'),
    dropAbout: (credentialIds: readonly string[], before: string): Step =>
      run(
        build.deleteFrom('audit').where('credential_id', 'in', credentialIds).where('id', '<', before),
        'any',
      ),
  }
}

async function queryRows(engine: Engine, filter: AuditFilter, limit: number): Promise<AuditRow[]> {
  const { build, read } = engine
  const { agentId, actor, backend, action, credentialId, runId } = filter
  const entries = bounded(build.selectFrom('audit').selectAll(), filter).orderBy('id', 'desc').limit(limit)
  // Each of these has an index of its own, in the order of the ids.
  if (credentialId !== undefined || runId !== undefined) {
    let some = entries
    if (credentialId !== undefined) some = some.where('credential_id', '=', credentialId)
    if (runId !== undefined) some = some.where('run_id', '=', runId)
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
