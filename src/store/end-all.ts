import { type Kysely, sql } from 'kysely'
import type { EndReason } from '../domain/credential.ts'
import { encodeTime } from '../domain/ids.ts'
import type { Step } from './change.ts'
import { run } from './run.ts'
import type { AuditRow, Tables } from './schema.ts'

/** What the audit says of each credential that a change ends by the set. */
export type EndedBy = Pick<AuditRow, 'actor' | 'ip_address' | 'user_agent' | 'auth_method' | 'request_id'>

/** The columns of an entry that stand in the credential itself, under the same name. */
const COPIED = ['agent_id', 'agent_name', 'backend', 'scopes', 'ttl_ms'] as const
const GIVEN = ['actor', 'ip_address', 'user_agent', 'auth_method', 'request_id'] as const

/**
 * Ends all that an agent or a backend has and that has not expired, each with its audit entry. Goes AFTER the step that ends the owner:
 * on PostgreSQL that step waits for the issues that hold a guard on it, and only a later one sees their rows.
 * The reason is given once in the life of the agent or backend, so the rows that carry it are the ones just
 * changed.
 */
export function endAll(
  build: Kysely<Tables>,
  owner: { agent_id: string } | { backend_uid: string },
  reason: EndReason,
  now: number,
  by: EndedBy,
): Step[] {
  const [column, id] =
    'agent_id' in owner
      ? (['agent_id', owner.agent_id] as const)
      : (['backend_uid', owner.backend_uid] as const)
  /** An active one with nothing to undo upstream is done with; what is pending may yet come into being there. */
  const done = sql`state = 'active' AND revocation <> 'exact'`
  const ended = build
    .updateTable('credentials')
    .set({
      state: sql`CASE WHEN ${done} THEN 'revoked' ELSE 'revoking' END`,
      settled_at: sql`CASE WHEN ${done} THEN cast(${now} as bigint) ELSE settled_at END`,
      due_at: sql`CASE WHEN ${done} THEN NULL ELSE cast(${now} as bigint) END`,
      handle: sql`CASE WHEN ${done} THEN NULL ELSE handle END`,
      end_reason: reason,
      ended_at: now,
      attempts: 0,
    })
    .where(column, '=', id)
    .where('ended_at', 'is', null)
    // What has expired already stays expired: the sweeper is about to say so, whoever has ended since.
    .where(sql<boolean>`NOT (state = 'active' AND expires_at <= ${now})`)
  const entries = entriesOf(build, reason, now, by)
    .where(column, '=', id)
    .where('end_reason', '=', reason)
    .where('ended_at', '=', now)
  const recorded = build
    .insertInto('audit')
    .columns(['id', 'at', 'action', 'outcome', 'credential_id', 'details', ...COPIED, ...GIVEN])
    .expression(entries)
  return [run(ended, 'any'), run(recorded, 'any')]
}

/** An entry's id is its time and the credential's own tail (which starts at the 16th character of `cred_…`). */
function entriesOf(build: Kysely<Tables>, reason: EndReason, now: number, by: EndedBy) {
  const text = (value: string | null) => sql<string>`cast(${value} as text)`
  return build
    .selectFrom('credentials')
    .select([
      sql<string>`${sql.lit(encodeTime(now))} || substr(id, 16)`.as('id'),
      sql<number>`cast(${now} as bigint)`.as('at'),
      sql.lit('credential.revoked').as('action'),
      sql.lit('ok').as('outcome'),
      sql<string>`id`.as('credential_id'),
      text(JSON.stringify({ reason })).as('details'),
      ...COPIED,
      ...GIVEN.map((name) => text(by[name]).as(name)),
    ])
}
