import { DEFAULT_PAGE } from '../../domain/limits.ts'
import type { Operator } from '../../domain/people/operator.ts'
import type { Core } from '../context.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'

/** Oldest first. */
export async function listOperators(
  { store }: Pick<Core, 'store'>,
  { cursor, limit = DEFAULT_PAGE }: PageQuery,
): Promise<Page<Operator>> {
  return pageOf(await store.operators.list(cursor, limit + 1), limit, ({ id }) => id)
}
