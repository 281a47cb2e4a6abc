import { type RawBuilder, sql } from 'kysely'
import type { AuditTrace } from '../../domain/audit-entry.ts'
import { encodeTime } from '../../domain/ids.ts'
import type { RunEndReason } from '../../domain/run.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import { among } from './among.ts'
import { unfinishedEnds } from './unfinished-ends.ts'

/** More raises of the generation than this in one change become one, of everything: PostgreSQL remembers as many. */
const MAX_TOPICS = 32

/** How a set of runs ends. */
export interface RunsEnding {
  readonly reason: RunEndReason
  /** Epoch ms. */
  readonly endedAt: number
  /** The time of the entries, which may come later. */
  readonly now: number
  readonly by: AuditTrace
}

/** A run that has ended and still has credentials to end. */
export interface UnfinishedRun {
  readonly runId: string
  readonly endedAt: number
  readonly by: AuditTrace
}

export function runEnds(engine: Engine) {
  const { build } = engine
  const unfinished = unfinishedEnds<Omit<UnfinishedRun, 'runId'>>(engine, 'ending-run')
  return {
    /**
     * Ends all of `ids`, each with its entry, or none when one of them has ended, or for missed heartbeats: has beaten since it
     * was due. What nodes keep in memory of them is stale with the commit; place it BEFORE the end of their credentials, as
     * with an agent (`end-all.ts`).
     */
    endRuns: (ids: readonly string[], ending: RunsEnding): Step[] => [
      ...(ending.reason === 'missed_heartbeat' ? [requireDue(engine, ids, ending.now)] : []),
      ...endThose(engine, among(engine, ids), ending, ids.length),
      run(build.deleteFrom('run_beats').where(among(engine, ids, 'run_id')), 'any'),
      ...(ids.length > MAX_TOPICS
        ? [{ op: 'invalidate' } as const]
        : ids.map((id) => ({ op: 'invalidate', topic: id }) as const)),
    ],
    /**
     * As `endRuns`, for those of an agent that ends or has ended, all or some: everything cached about the agent is stale already.
     * Place it AFTER the step that ends the agent. The job drops their beats.
     */
    endRunsOfAgent: (agentId: string, ending: Omit<RunsEnding, 'reason'>, ids?: readonly string[]): Step[] =>
      endThose(
        engine,
        ids === undefined ? sql<boolean>`agent_id = ${agentId}` : among(engine, ids),
        { ...ending, reason: 'agent_ended' },
        'any',
      ),
    /** Of runs that have ended. */
    dropBeats: (ids: readonly string[]): Step =>
      run(build.deleteFrom('run_beats').where(among(engine, ids, 'run_id')), 'any'),
    /** For a run with very many credentials, which are ended in slices afterwards (ADR 0023). */
    beginEnd: ({ runId, ...end }: UnfinishedRun): Step => unfinished.note(runId, end),
    finishEnd: (runId: string): Step => unfinished.forget(runId),
    unfinishedEnds: async (limit: number): Promise<UnfinishedRun[]> =>
      (await unfinished.list(limit)).map(({ id, end }) => ({ runId: id, ...end })),
  }
}

/** Refused when one of them has beaten since it was due. Holds their beats until the commit. */
function requireDue(engine: Engine, ids: readonly string[], now: number): Step {
  const due = engine.build
    .updateTable('run_beats')
    .set((e) => ({ due_at: e.ref('due_at') }))
    .where(among(engine, ids, 'run_id'))
    .where('due_at', '<=', now)
  return run(due, ids.length)
}

/** Each entry has its time followed by the tail of the id of its run (from the 15th character of `run_…`). */
function endThose(
  { build, dialect }: Engine,
  which: RawBuilder<boolean>,
  { reason, endedAt, now, by }: RunsEnding,
  rows: number | 'any',
): Step[] {
  const text = (value: string | null) => sql<string>`cast(${value} as text)`
  const entries = build
    .selectFrom('runs')
    .select([
      sql<string>`${text(encodeTime(now))} || substr(id, 15)`.as('id'),
      sql<number>`cast(${now} as bigint)`.as('at'),
      sql.lit('run.ended').as('action'),
      sql.lit('ok').as('outcome'),
      sql<string>`id`.as('run_id'),
      'agent_id',
      'agent_name',
      sql.lit('').as('backend'),
      text(JSON.stringify({ reason })).as('details'),
      text(by.actor).as('actor'),
      text(by.ipAddress).as('ip_address'),
      text(by.userAgent).as('user_agent'),
      text(by.authMethod).as('auth_method'),
      text(by.requestId).as('request_id'),
    ])
    .where(which)
    .where('ended_at', 'is', null)
  const recorded = build
    .insertInto('audit')
    .columns([
      ...([
        'id',
        'at',
        'action',
        'outcome',
        'run_id',
        'agent_id',
        'agent_name',
        'backend',
        'details',
      ] as const),
      ...(['actor', 'ip_address', 'user_agent', 'auth_method', 'request_id'] as const),
    ])
    .expression(dialect === 'postgres' ? entries.forUpdate() : entries)
  const ended = build
    .updateTable('runs')
    .set((e) => ({
      ended_at: endedAt,
      reason,
      ended_by: by.actor === 'system' ? null : by.actor,
      version: e('version', '+', 1),
      last_beat: sql<number>`(SELECT beat_at FROM run_beats WHERE run_id = runs.id)`,
    }))
    .where(which)
    .where('ended_at', 'is', null)
  return [{ ...run(recorded, rows), timeAt: 0 }, run(ended, rows)]
}
