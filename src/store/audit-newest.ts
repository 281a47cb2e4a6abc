import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { AuditFilter } from './audit.ts'
import { type IndexPrefix, listPrefixes } from './audit-prefixes.ts'
import type { Engine } from './engine.ts'
import type { Tables } from './schema.ts'

/** Terms of one UNION ALL; SQLite allows 500. */
const MAX_TERMS = 400

/** The newest ids under every prefix of the index that the filter leaves open, newest first. */
export function newestIds(engine: Engine, filter: AuditFilter, limit: number): Promise<string[]> {
  const open = filter.backend === undefined || filter.action === undefined
  return open && engine.dialect === 'postgres'
    ? newestOfSeek(engine, filter, limit)
    : newestOfUnion(engine, filter, limit)
}

/** SQLite has no LATERAL, but compiles a union of many terms in no time. */
async function newestOfUnion(engine: Engine, filter: AuditFilter, limit: number): Promise<string[]> {
  const { build, read } = engine
  const all = await listPrefixes(engine, filter)
  const ids: string[] = []
  for (let start = 0; start < all.length; start += MAX_TERMS) {
    const [head, ...rest] = all.slice(start, start + MAX_TERMS).map((prefix) => {
      const term = matching(bounded(build.selectFrom('audit').select('id'), filter), prefix)
      return build.selectFrom(term.orderBy('id', 'desc').limit(limit).as('t')).select('t.id')
    })
    if (head === undefined) break
    const union = rest.reduce((query, term) => query.unionAll(term), head)
    const newest = build.selectFrom(union.as('u')).select('u.id').orderBy('u.id', 'desc').limit(limit)
    for (const row of await read<{ id: string }>(newest)) ids.push(row.id)
  }
  return ids.sort().reverse().slice(0, limit)
}

/** PostgreSQL plans each term of a union (ms for a hundred), so it seeks and merges in one statement. */
async function newestOfSeek(
  { build, read }: Engine,
  { agentId, backend, action, from, before }: AuditFilter,
  limit: number,
): Promise<string[]> {
  const agent = agentId === undefined ? [] : [sql`agent_id = ${agentId}`]
  const given = backend === undefined ? agent : [...agent, sql`backend = ${backend}`]
  const open = [
    ...(backend === undefined ? ['backend'] : []),
    ...(action === undefined ? ['action'] : []),
  ] as const
  const columns = sql.join(open.map((name) => sql.ref(name)))
  const reached = sql.join(open.map((name) => sql.ref(`seek.${name}`)))
  const under = [
    ...given,
    ...open.map((name) => sql`${sql.ref(`audit.${name}`)} = ${sql.ref(`seek.${name}`)}`),
    ...(action === undefined ? [] : [sql`action = ${action}`]),
    ...(from === undefined ? [] : [sql`id >= ${from}`]),
    ...(before === undefined ? [] : [sql`id < ${before}`]),
  ]
  const query = sql<{ id: string }>`WITH RECURSIVE seek AS (
      (SELECT ${columns} FROM audit WHERE ${all(given)} ORDER BY ${columns} LIMIT 1)
      UNION ALL
      SELECT n.* FROM seek CROSS JOIN LATERAL (SELECT ${columns} FROM audit
        WHERE ${all([...given, sql`(${columns}) > (${reached})`])} ORDER BY ${columns} LIMIT 1) AS n
    ) SELECT t.id FROM seek CROSS JOIN LATERAL (SELECT id FROM audit
        WHERE ${all(under)} ORDER BY id DESC LIMIT ${limit}) AS t
      ORDER BY t.id DESC LIMIT ${limit}`
  return (await read<{ id: string }>({ compile: () => query.compile(build) })).map((row) => row.id)
}

function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`TRUE` : sql.join(conditions, sql` AND `)
}

type Entries<O> = SelectQueryBuilder<Tables, 'audit', O>

export function bounded<O>(query: Entries<O>, { from, before }: AuditFilter): Entries<O> {
  const lower = from === undefined ? query : query.where('id', '>=', from)
  return before === undefined ? lower : lower.where('id', '<', before)
}

function matching<O>(query: Entries<O>, prefix: IndexPrefix): Entries<O> {
  return prefix.reduce((narrowed, [column, value]) => narrowed.where(column, '=', value), query)
}
