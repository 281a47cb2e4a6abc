import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

export interface PluginView {
  readonly name: string
  readonly version: string
  readonly builtin: boolean
}

type Parts = Pick<Core, 'backends' | 'store' | 'ids' | 'settings'>

/** By name. */
export function listPlugins(core: Parts): PluginView[] {
  return [...core.backends.kinds.keys()].sort().map((name) => ({
    name,
    version: core.settings.version,
    builtin: true,
  }))
}

/** Reopens every backend; calls under way on the old instances finish. */
export async function reloadPlugins(core: Parts, actor: Actor): Promise<PluginView[]> {
  await reload(core, actor, undefined)
  return listPlugins(core)
}

/** Throws `not_found` for a kind that is not loaded. */
export async function reloadPlugin(core: Parts, actor: Actor, name: string): Promise<PluginView> {
  const plugin = listPlugins(core).find((one) => one.name === name)
  if (plugin === undefined) throw new Problem('not_found', { message: 'There is no such plugin.' })
  await reload(core, actor, name)
  return plugin
}

async function reload(core: Parts, actor: Actor, kind: string | undefined): Promise<void> {
  const details = { plugin: kind ?? 'all' }
  // Before the generation rises, so that every reader of the new generation opens new instances.
  core.backends.reload(kind)
  await commit(core, actor, [
    { op: 'invalidate', topic: 'backends' },
    audit(core, actor, { action: 'plugin.reloaded', details }),
  ])
}
