import { type Compilable, sql } from 'kysely'
import { deadAt, MISSED_BEATS, type Run } from '../../domain/run.ts'
import type { Step } from '../engine/change.ts'
import { countRows } from '../engine/count.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { RunRow, Tables } from '../schema/rows.ts'
import { among } from './among.ts'
import { codecs } from './codecs.ts'
import { runEnds } from './run-ends.ts'

/** A run with its last durable beat, which one that has ended keeps in its row. */
export interface BeatenRun {
  readonly run: Run
  readonly beatAt: number | null
}

/** A living run whose beats stopped, as far as the store knows. */
export interface DueRun {
  readonly id: string
  readonly heartbeatMs: number
  readonly beatAt: number
  readonly dueAt: number
  /** `agent`: it has ended with its agent, and its row does not say so yet. */
  readonly ended: 'run' | 'agent' | undefined
}

/** Which runs a list shows. */
export interface RunFilter {
  readonly agentId?: string | undefined
  /** One alone. */
  readonly id?: string | undefined
  readonly isLiving?: boolean | undefined
}

/** Runs and their beats. A run ends with its agent for every reader, also while the rows are still being written (ADR 0023). */
export function createRuns(engine: Engine) {
  return { ...runReads(engine), ...beatReads(engine), ...runSteps(engine), ...runEnds(engine) }
}

type OwnedRow = RunRow & { readonly agent_ended_at: number | null }
type BeatenRow = OwnedRow & { readonly beat_at: number | null }

function toRun(row: OwnedRow): Run {
  const found = codecs.runs.decode(row)
  return found.endedAt === null && row.agent_ended_at !== null
    ? { ...found, endedAt: row.agent_ended_at, reason: 'agent_ended' }
    : found
}

function runReads(engine: Engine) {
  const { build, read } = engine
  const byId = engine.prepare<OwnedRow>(
    'SELECT r.*, a.ended_at AS agent_ended_at FROM runs AS r LEFT JOIN agents AS a ON a.id = r.agent_id AND r.ended_at IS NULL WHERE r.id = ?',
  )
  const living = () => build.selectFrom('runs').select('id').where('ended_at', 'is', null)
  const ids = async (query: Compilable<{ id: string }>) =>
    (await read<{ id: string }>(query)).map(({ id }) => id)
  const beaten = () =>
    build
      .selectFrom('runs')
      .leftJoin('agents', (join) =>
        join.onRef('agents.id', '=', 'runs.agent_id').on('runs.ended_at', 'is', null),
      )
      .leftJoin('run_beats', 'run_beats.run_id', 'runs.id')
      .selectAll('runs')
      .select(['agents.ended_at as agent_ended_at', 'run_beats.beat_at'])
  const readBeaten = async (query: Compilable<BeatenRow>): Promise<BeatenRun[]> =>
    (await read<BeatenRow>(query)).map((row) => ({ run: toRun(row), beatAt: row.beat_at ?? row.last_beat }))
  return {
    find: async (id: string): Promise<Run | undefined> => {
      const [row] = await byId([id])
      return row === undefined ? undefined : toRun(row)
    },
    /** Newest first, those before `cursor`, an id. */
    list: async (
      { agentId, id, isLiving }: RunFilter,
      cursor: string | undefined,
      limit: number,
    ): Promise<BeatenRun[]> => {
      let query = beaten()
      if (agentId !== undefined) query = query.where('runs.agent_id', '=', agentId)
      if (id !== undefined) query = query.where('runs.id', '=', id)
      if (isLiving !== undefined) query = query.where('runs.ended_at', isLiving ? 'is' : 'is not', null)
      if (cursor !== undefined) query = query.where('runs.id', '<', cursor)
      return readBeaten(query.orderBy('runs.id', 'desc').limit(limit))
    },
    /** These, in no order. */
    findAll: (some: readonly string[]): Promise<BeatenRun[]> =>
      readBeaten(beaten().where(among(engine, some, 'runs.id'))),
    /** Counts no further than `atMost`. */
    countLiving: (agentId: string, atMost: number): Promise<number> =>
      countRows(engine, living().where('agent_id', '=', agentId).limit(atMost)),
    /** Of all agents; counts no further than `atMost`. */
    countAllLiving: (atMost: number): Promise<number> => countRows(engine, living().limit(atMost)),
    livingOf: (agentId: string, limit: number): Promise<string[]> =>
      ids(living().where('agent_id', '=', agentId).orderBy('id').limit(limit)),
    /** Those past the end that the server sets for a run, earliest first. */
    expired: (now: number, limit: number): Promise<string[]> =>
      ids(living().where('expires_at', '<=', now).orderBy('expires_at').limit(limit)),
    oldestEnded: (time: number, limit: number): Promise<string[]> =>
      ids(
        build.selectFrom('runs').select('id').where('ended_at', '<', time).orderBy('ended_at').limit(limit),
      ),
  }
}

function beatReads({ build, read }: Engine) {
  return {
    /** Runs that the job must look at, the longest silent first. */
    due: async (now: number, limit: number): Promise<DueRun[]> => {
      const due = build
        .selectFrom('run_beats')
        .leftJoin('runs', (join) => join.onRef('runs.id', '=', 'run_id').on('runs.ended_at', 'is', null))
        .leftJoin('agents', (join) =>
          join.onRef('agents.id', '=', 'runs.agent_id').on('agents.ended_at', 'is not', null),
        )
        .selectAll('run_beats')
        .select(['runs.id as living', 'agents.id as ended_agent'])
        .where('due_at', '<=', now)
        .orderBy('due_at')
        .limit(limit)
      type Row = Tables['run_beats'] & { living: string | null; ended_agent: string | null }
      return (await read<Row>(due)).map((row) => ({
        id: row.run_id,
        heartbeatMs: row.heartbeat_ms,
        beatAt: row.beat_at,
        dueAt: row.due_at,
        ended: row.living === null ? 'run' : row.ended_agent === null ? undefined : 'agent',
      }))
    },
  }
}

/** When a run beat, by its id; epoch ms. */
export type Beat = readonly [id: string, at: number]

function runSteps(engine: Engine) {
  const { build, dialect } = engine
  const given =
    dialect === 'sqlite'
      ? sql`(SELECT value ->> 0 AS id, value ->> 1 AS at FROM json_each(`
      : sql`(SELECT value ->> 0 AS id, (value ->> 1)::bigint AS at FROM json_array_elements(`
  /** Of beats: `[[id, ms], …]`, as one parameter however many there are. */
  const rowsOf = (pairs: readonly (readonly [string, number])[]) =>
    dialect === 'sqlite'
      ? sql`${given}${JSON.stringify(pairs)})) AS given`
      : sql`${given}cast(${JSON.stringify(pairs)} as json))) AS given`
  return {
    /** The run began beating as it started. */
    insert: (begun: Run): Step[] => [
      insert('runs', codecs.runs.encode(begun)),
      insert('run_beats', {
        run_id: begun.id,
        heartbeat_ms: begun.heartbeatMs,
        beat_at: begun.startedAt,
        due_at: deadAt(begun.heartbeatMs, begun.startedAt),
      }),
    ],
    /** Makes these beats durable; one that is older than what is stored, or of a run that has ended, changes nothing. */
    beat: (beats: readonly Beat[]): Step => {
      const update = sql`UPDATE run_beats SET beat_at = given.at, due_at = given.at + ${sql.lit(MISSED_BEATS)} * heartbeat_ms
        FROM ${rowsOf(beats)} WHERE run_beats.run_id = given.id AND run_beats.beat_at < given.at`
      return run({ compile: () => update.compile(build) }, 'any')
    },
    /** Looks at these again at the given times, which are more than three intervals after their beats. Not at those that have beaten meanwhile. */
    lookAgain: (at: readonly (readonly [id: string, at: number])[], now: number): Step => {
      const update = sql`UPDATE run_beats SET due_at = given.at
        FROM ${rowsOf(at)} WHERE run_beats.run_id = given.id AND run_beats.due_at <= ${now}`
      return run({ compile: () => update.compile(build) }, 'any')
    },
    /** Deletes runs that have ended. */
    drop: (ids: readonly string[]): Step =>
      run(build.deleteFrom('runs').where(among(engine, ids)).where('ended_at', 'is not', null), 'any'),
  }
}
