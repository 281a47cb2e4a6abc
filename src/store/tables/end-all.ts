import { type Expression, type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Action } from '../../domain/actions.ts'
import type { AuditTrace } from '../../domain/audit-entry.ts'
import type { EndReason } from '../../domain/credential.ts'
import { encodeTime } from '../../domain/ids.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { Tables } from '../schema/rows.ts'
import { among, ofRuns } from './among.ts'

/** Who ended a set of credentials, for the audit entry of each. */
export type EndedBy = AuditTrace

export type Owner =
  | { readonly agentId: string }
  | { readonly backendUid: string }
  | { readonly runIds: readonly string[] }

/** Columns that an entry copies from its credential. */
const COPIED = ['agent_id', 'agent_name', 'backend', 'scopes', 'ttl_ms', 'run_id'] as const
const GIVEN = {
  actor: 'actor',
  ip_address: 'ipAddress',
  user_agent: 'userAgent',
  auth_method: 'authMethod',
  request_id: 'requestId',
} as const
const GIVEN_COLUMNS = Object.keys(GIVEN) as (keyof typeof GIVEN)[]

/**
 * Ends all unexpired credentials of an agent, a backend or some runs, each with its audit entry. Place it AFTER the step that ends
 * the owner: on PostgreSQL that step waits for the issues that hold a guard on the owner, and only a later step sees
 * their rows.
 */
export function endAll(
  engine: Pick<Engine, 'build' | 'dialect'>,
  owner: Owner,
  reason: EndReason,
  now: number,
  by: EndedBy,
): Step[] {
  return endThose(engine, ownedBy(engine, owner), { reason, endedAt: now, now, by }, 'any')
}

function ownedBy(engine: Pick<Engine, 'dialect'>, owner: Owner): RawBuilder<boolean> {
  if ('agentId' in owner) return sql<boolean>`agent_id = ${owner.agentId}`
  if ('runIds' in owner) return ofRuns(engine, owner.runIds)
  // A living credential is always due at some time, and `credentials_due` has those of a backend.
  return sql<boolean>`backend_uid = ${owner.backendUid} AND due_at IS NOT NULL`
}

/**
 * As `endAll`, for those of `ids` that have neither ended nor expired. An owner with very many credentials loses most of
 * them in slices, before the one change that ends the owner and the rest.
 */
export function endSome(
  engine: Pick<Engine, 'build' | 'dialect'>,
  ids: readonly string[],
  reason: EndReason,
  now: number,
  by: EndedBy,
): Step[] {
  return endThose(engine, among(engine, ids), { reason, endedAt: now, now, by }, 'any')
}

/** When and why a set of credentials ended: `now` is the time of the entries, which may come later. */
interface Ending {
  readonly reason: EndReason
  readonly endedAt: number
  readonly now: number
  readonly by: EndedBy
}

/**
 * Ends credentials of an agent that ended earlier, at `endedAt`: all of `ids`, or none when one of them has ended or
 * had expired by then.
 */
export function endLate(
  engine: Pick<Engine, 'build' | 'dialect'>,
  ids: readonly string[],
  ending: Ending,
): Step[] {
  return endThose(engine, among(engine, ids), ending, ids.length)
}

/** The entries come first: the index of living credentials finds the rows before they change, and none does afterwards. */
function endThose(
  { build, dialect }: Pick<Engine, 'build' | 'dialect'>,
  which: RawBuilder<boolean>,
  { reason, endedAt, now, by }: Ending,
  rows: number | 'any',
): Step[] {
  // An expired credential stays expired, as the sweeper is about to record.
  const living = sql<boolean>`${which} AND ended_at IS NULL AND NOT (state = 'active' AND expires_at <= ${endedAt})`
  const recorded = record(build, { action: 'credential.revoked', reason, now, by }, living, {
    isLocked: dialect === 'postgres',
  })
  /** An active credential with nothing to undo upstream is done; a pending one may still appear there. */
  const done = sql`state = 'active' AND revocation <> 'exact'`
  const ended = build
    .updateTable('credentials')
    .set({
      state: sql`CASE WHEN ${done} THEN 'revoked' ELSE 'revoking' END`,
      settled_at: sql`CASE WHEN ${done} THEN cast(${now} as bigint) ELSE settled_at END`,
      due_at: sql`CASE WHEN ${done} THEN NULL ELSE cast(${now} as bigint) END`,
      handle: sql`CASE WHEN ${done} THEN NULL ELSE handle END`,
      end_reason: reason,
      ended_at: endedAt,
      attempts: 0,
    })
    .where(living)
  return [{ ...run(recorded, rows), ...TIME_FIRST }, run(ended, rows)]
}

/**
 * Ends expired credentials that have nothing to revoke upstream, each with its audit entry: all of `ids`, or none when
 * one of them is no longer active.
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
  return [run(ended, ids.length), { ...run(recorded, ids.length), ...TIME_FIRST }]
}

/** The first parameter of `record` is the time in the ids. */
const TIME_FIRST = { timeAt: 0 } as const

interface Entries {
  readonly action: Action
  readonly reason?: EndReason
  readonly now: number
  readonly by: EndedBy
}

/**
 * One entry each. Its id is its time followed by the tail of the credential's id (from the 16th character of `cred_…`).
 * `isLocked` keeps the rows as they were recorded until the transaction ends; SQLite has one writer and needs no lock.
 */
function record(
  build: Kysely<Tables>,
  { action, reason, now, by }: Entries,
  which: Expression<SqlBool>,
  { isLocked = false } = {},
) {
  const text = (value: string | null) => sql<string>`cast(${value} as text)`
  const entries = build
    .selectFrom('credentials')
    .select([
      sql<string>`${text(encodeTime(now))} || substr(id, 16)`.as('id'),
      sql<number>`cast(${now} as bigint)`.as('at'),
      sql.lit(action).as('action'),
      sql.lit('ok').as('outcome'),
      sql<string>`id`.as('credential_id'),
      text(reason === undefined ? null : JSON.stringify({ reason })).as('details'),
      ...COPIED,
      ...GIVEN_COLUMNS.map((name) => text(by[GIVEN[name]]).as(name)),
    ])
    .where(which)
  return build
    .insertInto('audit')
    .columns(['id', 'at', 'action', 'outcome', 'credential_id', 'details', ...COPIED, ...GIVEN_COLUMNS])
    .expression(isLocked ? entries.forUpdate() : entries)
}
