import { sql } from 'kysely'
import type { Engine } from '../../engine/engine.ts'
import type { IndexPrefix, Share } from './shares.ts'

/** Every full prefix of the index that matches `share` and has entries. */
export async function listPrefixes(engine: Engine, share: Share): Promise<IndexPrefix[]> {
  if (share.isInOrder) return [share.leading]
  const backends =
    share.backend === undefined
      ? await distinctAfter(engine, share, share.leading, 'backend')
      : [share.backend]
  const upToBackend = backends.map((backend): IndexPrefix => [...share.leading, ['backend', backend]])
  const full = upToBackend.map(async (prefix): Promise<IndexPrefix[]> => {
    const actions =
      share.action === undefined ? await distinctAfter(engine, share, prefix, 'action') : [share.action]
    return actions
      .filter((action) => !share.without?.includes(action))
      .map((action) => [...prefix, ['action', action]])
  })
  return (await Promise.all(full)).flat()
}

/** The distinct values after `prefix` in the index, with one seek for each. */
async function distinctAfter(
  { build, read }: Engine,
  { within }: Share,
  prefix: IndexPrefix,
  column: 'backend' | 'action',
): Promise<string[]> {
  const equal = prefix.map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
  const all = within === undefined ? equal : [...equal, within]
  const condition = all.length === 0 ? sql`1 = 1` : sql.join(all, sql` AND `)
  const name = sql.ref(column)
  const query = sql<{ v: string | null }>`WITH RECURSIVE seek (v) AS (
      SELECT (SELECT min(${name}) FROM audit WHERE ${condition})
      UNION ALL
      SELECT (SELECT min(${name}) FROM audit WHERE ${condition} AND ${name} > seek.v) FROM seek WHERE seek.v IS NOT NULL
    ) SELECT v FROM seek WHERE v IS NOT NULL`
  const rows = await read<{ v: string }>({ compile: () => query.compile(build) })
  return rows.map((row) => row.v)
}
