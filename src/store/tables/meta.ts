import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'

/**
 * Single values by name: `key_check`, `hash_key` (sealed), `issuer_key` (the first), `admitted|<policy>`, a count of admissions,
 * `ending|<agent>` (`agent-ends.ts`), `reconcile|<backend>`, the time of the next run, `node|<id>`
 * (`core/server/nodes.ts`), and `state.<backend>` (sealed).
 */
export function createMeta(engine: Engine) {
  const { build, read } = engine
  return {
    get: async (key: string): Promise<string | undefined> =>
      (await read<{ value: string }>(build.selectFrom('meta').select('value').where('key', '=', key)))[0]
        ?.value,
    /** The values whose keys begin so, which ends with `|`. */
    list: async (prefix: `${string}|`): Promise<string[]> =>
      (
        await read<{ value: string }>(
          build
            .selectFrom('meta')
            .select('value')
            .where('key', '>', prefix)
            .where('key', '<', `${prefix.slice(0, -1)}}`)
            .orderBy('key'),
        )
      ).map(({ value }) => value),
    remove: (key: string): Step => run(build.deleteFrom('meta').where('key', '=', key), 'any'),
    add: (key: string, value: string): Step => insert('meta', { key, value }),
    replace: (key: string, from: string, to: string): Step =>
      run(build.updateTable('meta').set({ value: to }).where('key', '=', key).where('value', '=', from), 1),
  }
}
