import type { StoredPlugin } from '../../domain/plugin.ts'
import type { Step } from '../engine/change.ts'
import type { Engine } from '../engine/engine.ts'
import { insert, run } from '../engine/run.ts'
import type { PluginRow } from '../schema/rows.ts'
import { codecs } from './codecs.ts'

const { plugins } = codecs

/** Kinds from outside. The topic is that of the backends, which are opened again when their plugin changes. */
export function createPlugins({ build, read }: Engine) {
  const stale = { op: 'invalidate', topic: 'backends' } as const
  return {
    /** By name. */
    list: async (): Promise<StoredPlugin[]> =>
      (await read<PluginRow>(build.selectFrom('plugins').selectAll().orderBy('name'))).map(plugins.decode),
    find: async (name: string): Promise<StoredPlugin | undefined> =>
      (await read<PluginRow>(build.selectFrom('plugins').selectAll().where('name', '=', name))).map(
        plugins.decode,
      )[0],
    /** Refused as not unique when the name is taken. */
    insert: (plugin: StoredPlugin): Step[] => [insert('plugins', plugins.encode(plugin)), stale],
    /** Refused when the plugin was removed or replaced since it was read. */
    replace: (before: StoredPlugin, after: StoredPlugin): Step[] => [
      run(
        build
          .updateTable('plugins')
          .set(plugins.encode(after))
          .where('name', '=', before.name)
          .where('sha256', '=', before.sha256)
          .where('added_at', '=', before.addedAt),
        1,
      ),
      stale,
    ],
    /** Refused when the plugin was removed or replaced since it was read, or while a backend of its kind is open. */
    remove: ({ name, sha256 }: StoredPlugin): Step[] => [
      run(
        build
          .deleteFrom('plugins')
          .where('name', '=', name)
          .where('sha256', '=', sha256)
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('backends').select('uid').where('type', '=', name).where('config', 'is not', null),
              ),
            ),
          ),
        1,
      ),
      stale,
    ],
  }
}
