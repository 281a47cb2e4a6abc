import { addPlugin, removePlugin } from '../../../core/backends/add-plugin.ts'
import { listPlugins, type PluginView, reloadPlugin, reloadPlugins } from '../../../core/backends/plugins.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, sortedAfter } from '../paging.ts'
import { timestamp } from '../wire.ts'

export function adminPluginRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/plugins', async ({ actor, body }) =>
    present(await addPlugin(core, actor, body)),
  )

  addRoute(http, 'DELETE /v1/admin/plugins/:name', async ({ actor, params }) => {
    await removePlugin(core, actor, params.name)
  })

  addRoute(http, 'GET /v1/admin/plugins', async (call) => {
    const all = await listPlugins(core, call.actor)
    const rest = sortedAfter(all, call.query.cursor, ({ name }) => name)
    return firstPage(call, rest, ({ name }) => name).map(present)
  })

  addRoute(http, 'POST /v1/admin/plugins/reload', async ({ actor }) => {
    const plugins = await reloadPlugins(core, actor)
    return { loaded: plugins.length, plugins: plugins.map(present) }
  })

  addRoute(http, 'POST /v1/admin/plugins/:name/reload', async ({ actor, params }) => {
    const plugin = await reloadPlugin(core, actor, params.name)
    return { reloaded: plugin.name, version: plugin.version }
  })
}

function present({ name, version, builtin, pinned }: PluginView) {
  if (pinned === undefined) return { name, version, builtin }
  const { sha256, origin, protocol, runtime, addedAt } = pinned
  const { type } = pinned.description
  const own = type === name ? {} : { own_name: type }
  return { name, ...own, version, builtin, sha256, origin, protocol, runtime, added_at: timestamp(addedAt) }
}
