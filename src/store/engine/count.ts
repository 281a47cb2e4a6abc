import type { SelectQueryBuilder } from 'kysely'
import type { Tables } from '../schema/rows.ts'
import type { Engine } from './engine.ts'

/** How many rows `some` selects: limit it, so that counting costs no more than the question is worth. */
export async function countRows<T extends keyof Tables, O>(
  { build, read }: Pick<Engine, 'build' | 'read'>,
  some: SelectQueryBuilder<Tables, T, O>,
): Promise<number> {
  const counting = build.selectFrom(some.as('some')).select((e) => e.fn.countAll<number>().as('n'))
  return (await read<{ n: number }>(counting))[0]?.n ?? 0
}
