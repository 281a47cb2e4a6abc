import { sql } from 'kysely'
import type { Step } from './change.ts'
import type { Engine } from './engine.ts'
import { run } from './run.ts'

/** Every column that is sealed, and the column that its associated data names the row by. */
export const SEALED = [
  { table: 'meta', key: 'key', column: 'value' },
  { table: 'signing_keys', key: 'agent_id', column: 'private_key' },
  { table: 'issuer_keys', key: 'kid', column: 'private_key' },
  { table: 'backends', key: 'uid', column: 'config' },
  { table: 'credentials', key: 'id', column: 'handle' },
  { table: 'enrollments', key: 'id', column: 'answer' },
  { table: 'idempotency', key: 'credential_id', column: 'reply' },
] as const

export type SealedColumn = (typeof SEALED)[number]

/** For replacing the master key while the service runs. */
export function createSealed({ read, build }: Engine) {
  return {
    columns: SEALED,
    /** Some that are sealed under another version than this one. */
    listOther: (
      at: SealedColumn,
      version: number,
      limit: number,
    ): Promise<{ id: string; sealed: string }[]> => {
      const column = sql.ref<string>(at.column)
      const query = build
        .selectFrom(at.table)
        .select([sql.ref<string>(at.key).as('id'), column.as('sealed')])
        .where(sql<boolean>`${column} LIKE 's1.%' AND ${column} NOT LIKE ${`s1.${version}.%`}`)
        .limit(limit)
      return read<{ id: string; sealed: string }>(query)
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
