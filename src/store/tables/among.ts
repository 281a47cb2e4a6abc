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

/** Credentials of these runs that have not ended, read from the index of what lives of their agents. */
export function ofRuns(engine: Pick<Engine, 'dialect'>, runIds: readonly string[]): RawBuilder<boolean> {
  const agents = sql`SELECT agent_id FROM runs WHERE ${among(engine, runIds)}`
  const theirs =
    engine.dialect === 'sqlite'
      ? sql<boolean>`agent_id IN (${agents})`
      : sql<boolean>`agent_id = ANY (ARRAY(${agents} GROUP BY agent_id))`
  return sql<boolean>`${theirs} AND ${among(engine, runIds, 'run_id')}`
}
