import { setImmediate } from 'node:timers/promises'
import { type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine/engine.ts'

/** Rows of an index that are counted at once: some 3 ms of SQLite. */
const SLICE = 20_000
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

export interface OfBackend {
  /** Active, and not expired. */
  readonly live: number
  /** Epoch ms. */
  readonly earliestDue: number
}

/** Counts over millions of credentials, by index and in slices, so that other work gets its turn. */
export function createCounts(engine: Engine) {
  const { build, read, dialect } = engine
  return {
    /** By the uid of the backend. */
    ofBackends: async (now: number): Promise<Map<string, OfBackend>> => {
      const due = await grouped<{ n: number; earliest: number }>(engine, DUE, SLICE, {
        n: sql`count(CASE WHEN due_at > ${now} THEN 1 END)`,
        earliest: sql`min(due_at)`,
      })
      // They are in the index, too, and are not alive: those whose issue is under way, and those whose end is tried again later.
      const unsettled = await grouped<{ n: number }>(engine, UNSETTLED, READ_SLICE, {
        n: sql`count(CASE WHEN due_at > ${now} THEN 1 END)`,
      })
      const not = new Map<string, number>()
      for (const { of, n } of unsettled) not.set(of, (not.get(of) ?? 0) + n)
      const counts = new Map<string, OfBackend>()
      for (const { of, n, earliest } of due) {
        const before = counts.get(of)
        counts.set(of, {
          live: (before?.live ?? -(not.get(of) ?? 0)) + n,
          earliestDue: Math.min(before?.earliestDue ?? Number.POSITIVE_INFINITY, earliest),
        })
      }
      return counts
    },
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

type Grouped<F> = F & { readonly of: string }

/** The figures of each group, one row for each slice that it has a part in. */
async function grouped<F>(
  { build, read }: Engine,
  { columns, first, within }: Index,
  size: number,
  figures: { readonly [K in keyof F]: RawBuilder<unknown> },
): Promise<Grouped<F>[]> {
  const place = sql.join(columns.map((name) => sql.ref(name)))
  const [group, order] = columns.map((name) => sql.ref(name))
  const shown = Object.entries<RawBuilder<unknown>>(figures).map(
    ([name, one]) => sql`${one} AS ${sql.ref(name)}`,
  )
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
    const slice = sql<Grouped<F>>`SELECT ${group} AS "of", ${sql.join(shown)} FROM credentials
      WHERE ${range} GROUP BY ${group}`
    all.push(...(await read({ compile: () => slice.compile(build) })))
    if (end === undefined) return all
    after = [end.of, end.at]
    await setImmediate()
  }
}
