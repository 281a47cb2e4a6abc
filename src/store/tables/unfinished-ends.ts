import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'

/**
 * What has ended with very many credentials, which are ended in slices afterwards (ADR 0023). Each is noted in `meta`, under
 * `NAME|` and its id, until the last slice.
 */
export function unfinishedEnds<End extends object>({ build, read }: Engine, name: string) {
  const prefix = `${name}|`
  /** After every key with the prefix. */
  const after = `${name}}`
  return {
    note: (id: string, end: End): Step =>
      insert('meta', { key: `${prefix}${id}`, value: JSON.stringify(end) }),
    forget: (id: string): Step => run(build.deleteFrom('meta').where('key', '=', `${prefix}${id}`), 'any'),
    list: async (limit: number): Promise<{ readonly id: string; readonly end: End }[]> => {
      const found = build
        .selectFrom('meta')
        .selectAll()
        .where('key', '>', prefix)
        .where('key', '<', after)
        .orderBy('key')
        .limit(limit)
      return (await read<{ key: string; value: string }>(found)).map(({ key, value }) => ({
        id: key.slice(prefix.length),
        end: JSON.parse(value) as End,
      }))
    },
  }
}
