import { type RawBuilder, sql } from 'kysely'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'

/** Every sealed column, with the primary key that names the row in the associated data. */
export const SEALED = [
  { table: 'meta', key: 'key', column: 'value' },
  { table: 'signing_keys', key: 'agent_id', column: 'private_key' },
  { table: 'issuer_keys', key: 'kid', column: 'private_key' },
  { table: 'backends', key: 'uid', column: 'config' },
  { table: 'backends', key: 'uid', column: 'rotation' },
  { table: 'credentials', key: 'id', column: 'handle' },
  { table: 'enrollments', key: 'id', column: 'answer' },
] as const
/** Erased within minutes, so rewrapping only waits for that. Its associated data does not name the primary key. */
export const BRIEFLY_SEALED = { table: 'idempotency', column: 'reply' } as const

export type SealedColumn = (typeof SEALED)[number]

export interface SealedSlice {
  /** Rows sealed under a version that was not given. */
  readonly others: readonly { readonly id: string; readonly sealed: string }[]
  /** The key after which the next slice begins; undefined after the last slice. */
  readonly last: string | undefined
}

/** Rows in one read; most credentials hold nothing sealed any more. */
const SLICE = 2_000

/** For replacing the master key while the service runs. */
export function createSealed({ read, build }: Engine) {
  const isOther = (column: string, versions: readonly number[]): RawBuilder<boolean> => {
    const known = versions.map((version) => sql`${sql.ref(column)} NOT LIKE ${`s1.${version}.%`}`)
    return sql`${sql.join([sql`${sql.ref(column)} LIKE 's1.%'`, ...known], sql` AND `)}`
  }
  return {
    columns: SEALED,
    /** One slice of the rows whose key is greater than `after`. */
    slice: async (at: SealedColumn, after: string, versions: readonly number[]): Promise<SealedSlice> => {
      const key = sql.ref<string>(at.key)
      const next = build
        .selectFrom(at.table)
        .select(key.as('id'))
        .where(sql<boolean>`${key} > ${after}`)
        .orderBy(key)
        .limit(SLICE)
      const newest = build.selectFrom(next.as('next')).select((e) => e.fn.max('next.id').as('last'))
      const last = (await read<{ last: string | null }>(newest))[0]?.last ?? undefined
      if (last === undefined) return { others: [], last }
      const others = build
        .selectFrom(at.table)
        .select([key.as('id'), sql.ref<string>(at.column).as('sealed')])
        .where(sql<boolean>`${key} > ${after} AND ${key} <= ${last} AND ${isOther(at.column, versions)}`)
      return { others: await read<{ id: string; sealed: string }>(others), last }
    },
    /** Whether any stored reply is sealed under another version. */
    hasOtherReply: async (versions: readonly number[]): Promise<boolean> => {
      const { table, column } = BRIEFLY_SEALED
      const some = build
        .selectFrom(table)
        .select(sql<number>`1`.as('found'))
        // The first condition repeats that of the partial index.
        .where(sql<boolean>`${sql.ref(column)} IS NOT NULL AND ${isOther(column, versions)}`)
        .limit(1)
      return (await read<{ found: number }>(some)).length > 0
    },
    replace: (at: SealedColumn, id: string, from: string, to: string): Step =>
      run(
        build
          .updateTable(at.table)
          .set({ [at.column]: to } as never)
          .where(sql<boolean>`${sql.ref(at.key)} = ${id} AND ${sql.ref(at.column)} = ${from}`),
        1,
      ),
  }
}
