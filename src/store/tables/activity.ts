import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { SPANS } from '../../domain/activity.ts'
import { timeOfBody } from '../../domain/ids.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'
import type { ActivityRow, AuditRow } from '../schema/rows.ts'
import { createMeta } from './meta.ts'

/** An entry as it is counted. */
export type CountedEntry = Pick<AuditRow, 'id' | 'backend' | 'action'>
/** How many entries a time has, which begins at `at`. */
export type Activity = Omit<ActivityRow, 'span'>

export interface ActivityRange {
  /** One of `SPANS`. */
  readonly span: number
  /** Multiples of the span: `from` inclusive, `before` exclusive. */
  readonly from: number
  readonly before: number
  readonly backend?: string | undefined
  readonly action?: string | undefined
}

/** Some of these, added up. */
export interface ActivitySum extends Activity {
  /** How many. */
  readonly rows: number
}

const POSITION = 'activity'
/** Times that are added up at once: a few ms of SQLite where a hundred backends do ten things in each. */
const TIMES_AT_ONCE = 24

/**
 * How many entries the audit has, by time, backend and action: rows for each minute, and for longer times, so that a long
 * range reads no more rows than a short one (ADR 0062). The time of an entry is that of its id, as in the filters of the audit.
 */
export function createActivity(engine: Engine) {
  return { ...entryReads(engine), ...rowReads(engine), ...countSteps(engine) }
}

/** The audit, as far as it is not counted. */
function entryReads(engine: Engine) {
  const { build, read } = engine
  return {
    /** Body of an audit id: all entries up to it are counted. Empty when none is; undefined when nothing was ever counted. */
    position: (): Promise<string | undefined> => createMeta(engine).get(POSITION),
    /** Entries after `position` and before `horizon`, oldest first. */
    uncounted: (position: string, horizon: string, limit: number): Promise<CountedEntry[]> =>
      read<CountedEntry>(
        build
          .selectFrom('audit')
          .select(['id', 'backend', 'action'])
          .where('id', '>', position)
          .where('id', '<', horizon)
          .orderBy('id')
          .limit(limit),
      ),
    /** How many entries come after `position`, by their action; `isEarlier`: before `bound`. */
    tail: async (
      position: string,
      bound: string,
      atMost: number,
    ): Promise<{ action: string; isEarlier: boolean; count: number }[]> => {
      const entries = build
        .selectFrom('audit')
        .select(['action', sql<number>`CASE WHEN id < ${bound} THEN 1 ELSE 0 END`.as('earlier')])
        .where('id', '>', position)
        .orderBy('id')
        .limit(atMost)
      const groups = build
        .selectFrom(entries.as('entries'))
        .select((e) => ['action', 'earlier', e.fn.countAll<number>().as('count')])
        .groupBy(['action', 'earlier'])
      const rows = await read<{ action: string; earlier: number; count: number }>(groups)
      return rows.map(({ earlier, ...row }) => ({ ...row, isEarlier: earlier === 1 }))
    },
  }
}

function rowReads({ build, read, scan }: Engine) {
  return {
    /** In no order; any number, so in slices. */
    rows: ({ span, from, before, backend, action }: ActivityRange): AsyncIterable<Activity[]> => {
      let query = build
        .selectFrom('activity')
        .select(['at', 'backend', 'action', 'count'])
        .where('span', '=', span)
        .where('at', '>=', from)
        .where('at', '<', before)
      if (backend !== undefined) query = query.where('backend', '=', backend)
      if (action !== undefined) query = query.where('action', '=', action)
      return scan<Activity>(query)
    },
    /**
     * As `rows`, added up for each `step`, a multiple of the span, and unless `byBackend` over all backends: far fewer rows, which
     * the database adds up in a quarter of the time. Some times after the other, so that other work gets its turn; a step that
     * reaches into the next of them comes in parts.
     */
    async *sums(
      { span, from, before, backend, action }: ActivityRange,
      { step, byBackend }: { readonly step: number; readonly byBackend: boolean },
    ): AsyncGenerator<ActivitySum[]> {
      const at = sql<number>`at - at % ${sql.lit(step)}`
      for (let start = from; start < before; start += TIMES_AT_ONCE * span) {
        let query = build
          .selectFrom('activity')
          .select([
            at.as('at'),
            (byBackend ? sql.ref<string>('backend') : sql<string>`''`).as('backend'),
            'action',
            sql<number>`cast(sum(count) AS bigint)`.as('count'),
            sql<number>`count(*)`.as('rows'),
          ])
          .where('span', '=', span)
          .where('at', '>=', start)
          .where('at', '<', Math.min(before, start + TIMES_AT_ONCE * span))
        if (backend !== undefined) query = query.where('backend', '=', backend)
        if (action !== undefined) query = query.where('action', '=', action)
        query = query.groupBy([at, 'action'])
        yield await read<ActivitySum>(byBackend ? query.groupBy('backend') : query)
        await setImmediate()
      }
    },
    /** Whether there are rows that end at `time` or before. */
    hasAged: async (time: number): Promise<boolean> => {
      for (const span of SPANS) {
        const aged = build
          .selectFrom('activity')
          .select('at')
          .where('span', '=', span)
          .where('at', '<=', time - span)
        if ((await read(aged.limit(1))).length > 0) return true
      }
      return false
    },
  }
}

function countSteps(engine: Engine) {
  const { build, dialect } = engine
  const meta = createMeta(engine)
  return {
    /** Counts these entries and moves the position, or, if another node has moved it, does nothing. */
    count: (entries: readonly CountedEntry[], from: string | undefined, to: string): Step[] => {
      const rows = JSON.stringify(rowsOf(entries))
      const added =
        dialect === 'sqlite'
          ? // An upsert of a SELECT needs a WHERE (https://sqlite.org/lang_upsert.html §2.2).
            sql`SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(${rows}) WHERE true`
          : sql`SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, value ->> 3, (value ->> 4)::bigint FROM json_array_elements(${rows}::json)`
      const add = sql`INSERT INTO activity (span, at, backend, action, count) ${added}
        ON CONFLICT (span, at, backend, action) DO UPDATE SET count = activity.count + excluded.count`
      return [
        // First, because it locks out other nodes.
        from === undefined ? meta.add(POSITION, to) : meta.replace(POSITION, from, to),
        run({ compile: () => add.compile(build) }, 'any'),
      ]
    },
    /** Rows that end at `time` or before, some thousands at a time. */
    dropAged: (time: number, atMost: number): Step[] =>
      SPANS.map((span) =>
        run(
          {
            compile: () =>
              sql`DELETE FROM activity WHERE (span, at, backend, action) IN (SELECT span, at, backend, action FROM activity
                WHERE span = ${span} AND at <= ${time - span} ORDER BY at LIMIT ${sql.lit(atMost)})`.compile(
                build,
              ),
          },
          'any',
        ),
      ),
  }
}

type Row = [span: number, at: number, backend: string, action: string, count: number]

/** One row for each time, backend and action. */
function rowsOf(entries: readonly CountedEntry[]): Row[] {
  const rows = new Map<string, Row>()
  for (const { id, backend, action } of entries) {
    const time = timeOfBody(id)
    for (const span of SPANS) {
      const at = time - (time % span)
      const key = `${span} ${at} ${action} ${backend}`
      const row = rows.get(key)
      if (row === undefined) rows.set(key, [span, at, backend, action, 1])
      else row[4] += 1
    }
  }
  return [...rows.values()]
}
