import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine/engine.ts'

/** Rows of an index that are counted at once: some 4 ms of SQLite. */
const SLICE = 10_000
/** As above, where each row is read, too. */
const READ_SLICE = 2_000

/** An index with two columns, and the condition that it has. */
interface Index {
  readonly columns: readonly [group: string, order: string]
  /** Before all values of the second column. */
  readonly first: string | number
  readonly within: RawBuilder<unknown>
}

const DUE: Index = { columns: ['backend_uid', 'due_at'], first: -1, within: sql`due_at IS NOT NULL` }
const LIVING: Index = { columns: ['agent_id', 'id'], first: '', within: sql`ended_at IS NULL` }
const UNSETTLED: Index = {
  columns: ['backend_uid', 'id'],
  first: '',
  within: sql`state IN ('pending', 'revoking')`,
}

/** Credentials of a backend for which something is to do at some time. */
export interface DueOfBackend {
  /** How many are due after the given time: those that are alive, and those of `Unsettled`. */
  readonly later: number
  /** Epoch ms at which the first is due, or was. */
  readonly earliest: number
}

/** Credentials that have ended and whose upstream was not seen to be clean. */
export interface Unended {
  readonly count: number
  /** Epoch ms at which the first of them ended. */
  readonly since: number
}

/** Credentials of a backend whose issue or end is under way. */
export interface Unsettled {
  /** How many of them are due after the given time. */
  readonly later: number
  readonly unended: Unended | undefined
}

/**
 * Counts over millions of credentials, by index. SQLite, which runs in this process, counts in slices, so that other work gets
 * its turn.
 */
export function createCounts(engine: Engine) {
  const { build, read, dialect } = engine
  return {
    /** By the uid of the backend. */
    due: async (now: number): Promise<Map<string, DueOfBackend>> => {
      const counts = new Map<string, DueOfBackend>()
      const figures = {
        later: sql<number>`count(CASE WHEN due_at > ${now} THEN 1 END)`,
        earliest: sql<number>`min(due_at)`,
      }
      for (const { of, later, earliest } of await grouped<DueOfBackend>(engine, DUE, SLICE, figures)) {
        const before = counts.get(of) ?? { later: 0, earliest }
        counts.set(of, { later: before.later + later, earliest: Math.min(before.earliest, earliest) })
      }
      return counts
    },
    /** By the uid of the backend. */
    unsettled: (now: number): Promise<Map<string, Unsettled>> => countUnsettled(engine, now),
    /** How many each agent holds that have not ended, by its id; those whose issue is under way included. */
    ofAgents: async (): Promise<Map<string, number>> => {
      const counts = new Map<string, number>()
      for (const { of, n } of await grouped<{ n: number }>(engine, LIVING, SLICE, { n: sql`count(*)` }))
        counts.set(of, (counts.get(of) ?? 0) + n)
      return counts
    },
    /** What the database takes on disk, the journal of SQLite left out. */
    sizeBytes: async (): Promise<number> => {
      const size =
        dialect === 'sqlite'
          ? sql`SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size()`
          : sql`SELECT pg_database_size(current_database()) AS n`
      return (await read<{ n: number }>({ compile: () => size.compile(build) as never }))[0]?.n ?? 0
    },
  }
}

export async function countUnsettled(engine: Engine, now: number): Promise<Map<string, Unsettled>> {
  const counts = new Map<string, Unsettled>()
  const figures = {
    later: sql`count(CASE WHEN due_at > ${now} THEN 1 END)`,
    count: sql`count(CASE WHEN state = 'revoking' THEN 1 END)`,
    since: sql`min(CASE WHEN state = 'revoking' THEN ended_at END)`,
  }
  type Row = { later: number; count: number; since: number | null }
  for (const { of, later, count, since } of await grouped<Row>(engine, UNSETTLED, READ_SLICE, figures)) {
    const { later: before, unended } = counts.get(of) ?? { later: 0, unended: undefined }
    counts.set(of, {
      later: before + later,
      unended:
        since === null
          ? unended
          : { count: (unended?.count ?? 0) + count, since: Math.min(unended?.since ?? since, since) },
    })
  }
  return counts
}

type Grouped<F> = F & { readonly of: string }

/** The figures of each group, one row for each slice that it has a part in. */
async function grouped<F>(
  { build, read, dialect }: Engine,
  { columns, first, within }: Index,
  size: number,
  figures: { readonly [K in keyof F]: RawBuilder<unknown> },
): Promise<Grouped<F>[]> {
  const place = sql.join(columns.map((name) => sql.ref(name)))
  const [group, order] = columns.map((name) => sql.ref(name))
  const shown = Object.entries<RawBuilder<unknown>>(figures).map(
    ([name, one]) => sql`${one} AS ${sql.ref(name)}`,
  )
  const counted = (range: RawBuilder<unknown>) => {
    const query = sql<Grouped<F>>`SELECT ${group} AS "of", ${sql.join(shown)} FROM credentials
      WHERE ${range} GROUP BY ${group}`
    return read({ compile: () => query.compile(build) })
  }
  if (dialect === 'postgres') return counted(within)
  const all: Grouped<F>[] = []
  let after: readonly [string, string | number] = ['', first]
  for (;;) {
    const start = sql`${within} AND (${place}) > (${after[0]}, ${after[1]})`
    const last = sql<{
      of: string
      at: string | number
    }>`SELECT ${group} AS "of", ${order} AS "at" FROM credentials
      WHERE ${start} ORDER BY ${place} LIMIT 1 OFFSET ${sql.lit(size)}`
    const [end] = await read({ compile: () => last.compile(build) })
    const range = end === undefined ? start : sql`${start} AND (${place}) <= (${end.of}, ${end.at})`
    all.push(...(await counted(range)))
    if (end === undefined) return all
    after = [end.of, end.at]
    await setImmediate()
  }
}
