import { type Expression, type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Action } from '../../domain/actions.ts'
import type { EndReason } from '../../domain/credential.ts'
import { encodeTime } from '../../domain/ids.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { AuditRow, Tables } from '../schema/rows.ts'

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
  return endThose(build, sql<boolean>`${sql.ref(column)} = ${id}`, reason, now, by)
}

/**
 * As `endAll`, of `ids` those that have neither ended nor expired: what an owner with very many has is ended some at
 * a time, before the one change that ends the owner and the rest.
 */
export function endSome(
  engine: Pick<Engine, 'build' | 'dialect'>,
  ids: readonly string[],
  reason: EndReason,
  now: number,
  by: EndedBy,
): Step[] {
  return endThose(engine.build, among(engine, ids), reason, now, by)
}

function endThose(
  build: Kysely<Tables>,
  which: RawBuilder<boolean>,
  reason: EndReason,
  now: number,
  by: EndedBy,
): Step[] {
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
    .where(which)
    .where('ended_at', 'is', null)
    // What has expired already stays expired: the sweeper is about to say so, whoever has ended since.
    .where(sql<boolean>`NOT (state = 'active' AND expires_at <= ${now})`)
  const theirs = sql<boolean>`${which} AND end_reason = ${reason} AND ended_at = ${now}`
  return [
    run(ended, 'any'),
    run(record(build, { action: 'credential.revoked', reason, now, by }, theirs), 'any'),
  ]
}

/**
 * Ends what has passed its expiry and has nothing to be revoked upstream, each with its audit entry: all of `ids`, or
 * none when one of them is not active any more.
 */
export function expireAll(
  engine: Pick<Engine, 'build' | 'dialect'>,
  ids: readonly string[],
  now: number,
  by: EndedBy,
): Step[] {
  const { build } = engine
  const which = among(engine, ids)
  const ended = build
    .updateTable('credentials')
    .set({
      state: 'expired',
      end_reason: 'expired',
      ended_at: sql`expires_at`,
      settled_at: now,
      due_at: null,
      handle: null,
    })
    .where(which)
    .where('state', '=', 'active')
  const recorded = record(build, { action: 'credential.expired', now, by }, which)
  return [run(ended, ids.length), run(recorded, ids.length)]
}

function among({ dialect }: Pick<Engine, 'dialect'>, ids: readonly string[]): RawBuilder<boolean> {
  return dialect === 'sqlite'
    ? sql<boolean>`id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    : sql<boolean>`id = ANY (cast(${`{${ids.join(',')}}`} as text[]))`
}

interface Entries {
  readonly action: Action
  readonly reason?: EndReason
  readonly now: number
  readonly by: EndedBy
}

/** One entry for each. Its id is its time and the credential's own tail (which starts at the 16th character of `cred_…`). */
function record(build: Kysely<Tables>, { action, reason, now, by }: Entries, which: Expression<SqlBool>) {
  const text = (value: string | null) => sql<string>`cast(${value} as text)`
  const entries = build
    .selectFrom('credentials')
    .select([
      sql<string>`${sql.lit(encodeTime(now))} || substr(id, 16)`.as('id'),
      sql<number>`cast(${now} as bigint)`.as('at'),
      sql.lit(action).as('action'),
      sql.lit('ok').as('outcome'),
      sql<string>`id`.as('credential_id'),
      text(reason === undefined ? null : JSON.stringify({ reason })).as('details'),
      ...COPIED,
      ...GIVEN.map((name) => text(by[name]).as(name)),
    ])
    .where(which)
  return build
    .insertInto('audit')
    .columns(['id', 'at', 'action', 'outcome', 'credential_id', 'details', ...COPIED, ...GIVEN])
    .expression(entries)
}
