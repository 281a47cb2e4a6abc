import type { StoredPlugin } from '../../domain/plugin.ts'
import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

/** A kind as it is loaded. */
export interface PluginView {
  readonly name: string
  readonly version: string
  readonly builtin: boolean
  /** What an administrator added; undefined for a kind of Mayfly itself, or of a recipe. */
  readonly pinned: StoredPlugin | undefined
}

type Parts = Pick<Core, 'backends' | 'store' | 'ids' | 'settings'>

/** By name, also plugins that cannot be loaded. */
export async function listPlugins(core: Parts, { caller }: Actor): Promise<PluginView[]> {
  const [plugins] = await Promise.all([core.store.plugins.list(), core.backends.at(caller.generation)])
  const pinned = new Map(plugins.map((plugin) => [plugin.name, plugin]))
  const names = new Set([...core.backends.kinds.keys(), ...pinned.keys()])
  return [...names].sort().map((name) => viewOf(core, name, pinned.get(name)))
}

export function viewOf(
  core: Pick<Core, 'settings'>,
  name: string,
  pinned: StoredPlugin | undefined,
): PluginView {
  return {
    name,
    version: pinned?.version ?? core.settings.version,
    builtin: pinned === undefined,
    pinned,
  }
}

/** Reopens every backend, those of plugins with new processes; calls under way on the old instances finish. */
export async function reloadPlugins(core: Parts, actor: Actor): Promise<PluginView[]> {
  await reload(core, actor, undefined)
  return listPlugins(core, actor)
}

/** Throws `not_found` for a kind that is not loaded. */
export async function reloadPlugin(core: Parts, actor: Actor, name: string): Promise<PluginView> {
  const plugin = (await listPlugins(core, actor)).find((one) => one.name === name)
  if (plugin === undefined) throw noSuchPlugin()
  await reload(core, actor, name)
  return plugin
}

export const noSuchPlugin = () => new Problem('not_found', { message: 'There is no such plugin.' })

async function reload(core: Parts, actor: Actor, kind: string | undefined): Promise<void> {
  const details = { plugin: kind ?? 'all' }
  // Before the generation rises, so that every reader of the new generation opens new instances.
  core.backends.reload(kind)
  await commit(core, actor, [
    { op: 'invalidate', topic: 'backends' },
    audit(core, actor, { action: 'plugin.reloaded', details }),
  ])
}
