import { sql } from 'kysely'
import type { AuditFilter } from './audit.ts'
import type { Engine } from './engine.ts'

/** Values for the columns of an index up to its last one, in its order. */
export type IndexPrefix = readonly (readonly [column: 'agent_id' | 'backend' | 'action', value: string])[]

/** Every full prefix of an index that `filter` leaves open and that has entries. */
export async function listPrefixes(engine: Engine, filter: AuditFilter): Promise<IndexPrefix[]> {
  const agent: IndexPrefix = filter.agentId === undefined ? [] : [['agent_id', filter.agentId]]
  const backends =
    filter.backend === undefined ? await distinctAfter(engine, agent, 'backend') : [filter.backend]
  const upToBackend = backends.map((backend): IndexPrefix => [...agent, ['backend', backend]])
  const full = upToBackend.map(async (prefix): Promise<IndexPrefix[]> => {
    const actions =
      filter.action === undefined ? await distinctAfter(engine, prefix, 'action') : [filter.action]
    return actions.map((action) => [...prefix, ['action', action]])
  })
  return (await Promise.all(full)).flat()
}

/** The distinct values that follow `prefix` in the index, one seek each. */
async function distinctAfter(
  { build, read }: Engine,
  prefix: IndexPrefix,
  column: 'backend' | 'action',
): Promise<string[]> {
  const equal = prefix.map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
  const condition = prefix.length === 0 ? sql`1 = 1` : sql.join(equal, sql` AND `)
  const name = sql.ref(column)
  const query = sql<{ v: string | null }>`WITH RECURSIVE seek (v) AS (
      SELECT (SELECT min(${name}) FROM audit WHERE ${condition})
      UNION ALL
      SELECT (SELECT min(${name}) FROM audit WHERE ${condition} AND ${name} > seek.v) FROM seek WHERE seek.v IS NOT NULL
    ) SELECT v FROM seek WHERE v IS NOT NULL`
  const rows = await read<{ v: string }>({ compile: () => query.compile(build) })
  return rows.map((row) => row.v)
}
