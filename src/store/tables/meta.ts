import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'

/**
 * Single values by name: `key_check`, `hash_key` (sealed), `issuer_key` (the first), `admitted|<policy>`, a count of admissions,
 * `ending|<agent>` (`agent-ends.ts`), `reconcile|<backend>`, the time of the next run, `node|<id>`
 * (`core/server/nodes.ts`), `state.<backend>` (sealed), `health|<backend>`, `revoked|<backend>` and
 * `revoke-failed|<backend>` (`last-revocations.ts`), `told|…`, of which ages receivers of notifications have been told, and
 * `activity`, how far the audit is counted (`activity.ts`).
 */
export function createMeta(engine: Engine) {
  const { build, read } = engine
  return {
    get: async (key: string): Promise<string | undefined> =>
      (await read<{ value: string }>(build.selectFrom('meta').select('value').where('key', '=', key)))[0]
        ?.value,
    /** Those whose keys begin so, in their order. */
    list: (prefix: `${string}|`): Promise<{ key: string; value: string }[]> =>
      read(
        build
          .selectFrom('meta')
          .selectAll()
          .where('key', '>', prefix)
          // The character after `|`.
          .where('key', '<', `${prefix.slice(0, -1)}}`)
          .orderBy('key'),
      ),
    remove: (key: string): Step => run(build.deleteFrom('meta').where('key', '=', key), 'any'),
    add: (key: string, value: string): Step => insert('meta', { key, value }),
    replace: (key: string, from: string, to: string): Step =>
      run(build.updateTable('meta').set({ value: to }).where('key', '=', key).where('value', '=', from), 1),
  }
}
