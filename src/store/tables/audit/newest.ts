import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Engine } from '../../engine/engine.ts'
import type { Tables } from '../../schema/rows.ts'
import type { AuditFilter } from './filter.ts'
import { listPrefixes } from './prefixes.ts'
import { type IndexPrefix, type Share, sharesOf } from './shares.ts'

/** Terms in one UNION ALL; SQLite allows 500. */
const MAX_TERMS = 400
/** Entries whose actor is looked up in one statement. */
const MOST_CANDIDATES = 10_000

/** The newest ids under every prefix of the indexes that the filter leaves open, newest first. */
export async function newestIds(engine: Engine, filter: AuditFilter, limit: number): Promise<string[]> {
  const shares = sharesOf(filter).map((share) => newestOfShare(engine, share, limit))
  return newestFirst((await Promise.all(shares)).flat(), limit)
}

/**
 * The index of some shares lacks the actor, but almost all of their entries have the requested one. Then the newest
 * entries are found in the index first, and the actor is read only for those.
 */
async function newestOfShare(engine: Engine, share: Share, limit: number): Promise<string[]> {
  const { actor } = share
  if (actor === undefined || share.leading.some(([column]) => column === 'actor'))
    return newestInIndex(engine, share, limit)
  const found: string[] = []
  let { before } = share
  for (let size = limit; ; size = Math.min(4 * size, MOST_CANDIDATES)) {
    const ids = await newestInIndex(engine, { ...share, before }, size)
    found.push(...(await idsOfActor(engine, ids, actor)))
    if (ids.length < size || found.length >= limit) return newestFirst(found, limit)
    before = ids.at(-1)
  }
}

async function idsOfActor({ build, read }: Engine, ids: readonly string[], actor: string): Promise<string[]> {
  if (ids.length === 0) return []
  const rows = await read<{ id: string }>(
    build.selectFrom('audit').select('id').where('id', 'in', ids).where('actor', '=', actor),
  )
  return rows.map(({ id }) => id)
}

function newestInIndex(engine: Engine, share: Share, limit: number): Promise<string[]> {
  return engine.dialect === 'postgres' && isSought(share)
    ? newestOfSeek(engine, share, limit)
    : newestOfUnion(engine, share, limit)
}

/** Whether a column before the id has no value. */
function isSought({ isInOrder, backend, action }: Share): boolean {
  return !isInOrder && (backend === undefined || action === undefined)
}

function newestFirst(ids: string[], limit: number): string[] {
  return ids.sort().reverse().slice(0, limit)
}

/** SQLite has no LATERAL, but compiles a union of many terms very fast. */
async function newestOfUnion(engine: Engine, share: Share, limit: number): Promise<string[]> {
  const { build, read } = engine
  const all = await listPrefixes(engine, share)
  const ids: string[] = []
  for (let start = 0; start < all.length; start += MAX_TERMS) {
    const [head, ...rest] = all.slice(start, start + MAX_TERMS).map((prefix) => {
      const term = matching(bounded(build.selectFrom('audit').select('id'), share), share, prefix)
      return build.selectFrom(term.orderBy('id', 'desc').limit(limit).as('t')).select('t.id')
    })
    if (head === undefined) break
    const union = rest.reduce((query, term) => query.unionAll(term), head)
    const newest = build.selectFrom(union.as('u')).select('u.id').orderBy('u.id', 'desc').limit(limit)
    for (const row of await read<{ id: string }>(newest)) ids.push(row.id)
  }
  return newestFirst(ids, limit)
}

/** PostgreSQL plans each term of a union (milliseconds for a hundred), so one statement seeks and merges. */
async function newestOfSeek(
  { build, read }: Engine,
  { leading, within, without, backend, action, from, before }: Share,
  limit: number,
): Promise<string[]> {
  const first = leading.map(([name, value]) => sql`${sql.ref(name)} = ${value}`)
  const given = [
    ...first,
    ...(backend === undefined ? [] : [sql`backend = ${backend}`]),
    ...(within === undefined ? [] : [within]),
  ]
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
  const apart = action === undefined ? (without ?? []).map((one) => sql`seek.action <> ${one}`) : []
  const query = sql<{ id: string }>`WITH RECURSIVE seek AS (
      (SELECT ${columns} FROM audit WHERE ${all(given)} ORDER BY ${columns} LIMIT 1)
      UNION ALL
      SELECT n.* FROM seek CROSS JOIN LATERAL (SELECT ${columns} FROM audit
        WHERE ${all([...given, sql`(${columns}) > (${reached})`])} ORDER BY ${columns} LIMIT 1) AS n
    ) SELECT t.id FROM seek CROSS JOIN LATERAL (SELECT id FROM audit
        WHERE ${all(under)} ORDER BY id DESC LIMIT ${limit}) AS t
      WHERE ${all(apart)}
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

function matching<O>(query: Entries<O>, { within }: Share, prefix: IndexPrefix): Entries<O> {
  const equal = prefix.reduce((narrowed, [column, value]) => narrowed.where(column, '=', value), query)
  return within === undefined ? equal : equal.where(within)
}
