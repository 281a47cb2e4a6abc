import { type RawBuilder, sql } from 'kysely'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { run } from '../engine/run.ts'

/** Every column that is sealed, and the column that its associated data names the row by: the primary key. */
export const SEALED = [
  { table: 'meta', key: 'key', column: 'value' },
  { table: 'signing_keys', key: 'agent_id', column: 'private_key' },
  { table: 'issuer_keys', key: 'kid', column: 'private_key' },
  { table: 'backends', key: 'uid', column: 'config' },
  { table: 'credentials', key: 'id', column: 'handle' },
  { table: 'enrollments', key: 'id', column: 'answer' },
] as const
/** Erased within minutes (and named by something else than its key): nothing has to be done about it but wait. */
export const BRIEFLY_SEALED = { table: 'idempotency', column: 'reply' } as const

export type SealedColumn = (typeof SEALED)[number]

export interface SealedSlice {
  /** Those sealed under another version than the ones asked for. */
  readonly others: readonly { readonly id: string; readonly sealed: string }[]
  /** Where the next slice begins; undefined after the last one. */
  readonly last: string | undefined
}

/** Rows that are looked at in one read: most credentials hold nothing sealed any more. */
const SLICE = 2_000

/** For replacing the master key while the service runs. */
export function createSealed({ read, build }: Engine) {
  const isOther = (column: string, versions: readonly number[]): RawBuilder<boolean> => {
    const known = versions.map((version) => sql`${sql.ref(column)} NOT LIKE ${`s1.${version}.%`}`)
    return sql`${sql.join([sql`${sql.ref(column)} LIKE 's1.%'`, ...known], sql` AND `)}`
  }
  return {
    columns: SEALED,
    /** The rows after `after` by their key, in slices. */
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
    /** Whether a reply is still kept that is sealed under another version. */
    hasOtherReply: async (versions: readonly number[]): Promise<boolean> => {
      const { table, column } = BRIEFLY_SEALED
      const some = build
        .selectFrom(table)
        .select(sql<number>`1`.as('found'))
        // The first condition is the index's own.
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
