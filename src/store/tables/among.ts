import { type RawBuilder, sql } from 'kysely'
import type { Engine } from '../engine/engine.ts'

/** Whether the column is one of `ids`, as one parameter however many there are. Ids contain nothing to quote. */
export function among(
  { dialect }: Pick<Engine, 'dialect'>,
  ids: readonly string[],
  column = 'id',
): RawBuilder<boolean> {
  return dialect === 'sqlite'
    ? sql<boolean>`${sql.ref(column)} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
    : sql<boolean>`${sql.ref(column)} = ANY (cast(${`{${ids.join(',')}}`} as text[]))`
}
