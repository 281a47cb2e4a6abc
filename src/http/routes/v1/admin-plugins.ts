import { Type } from 'typebox'
import { AddPlugin, PageQuery, Plugin, ReloadedPlugin, ReloadedPlugins } from '../../../api/admin.ts'
import { name } from '../../../api/shared.ts'
import { addPlugin, removePlugin } from '../../../core/backends/add-plugin.ts'
import { listPlugins, type PluginView, reloadPlugin, reloadPlugins } from '../../../core/backends/plugins.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, pageLimit, sortedAfter } from '../paging.ts'
import { timestamp } from '../wire.ts'

const tags = ['admin: plugins']
const KindParam = Type.Object({ name: name('The kind.', 'postgres') })

export function adminPluginRoutes(http: Http): void {
  addingRoutes(http)
  reloadRoutes(http)

  addRoute(http, 'GET /v1/admin/plugins', {
    schema: {
      summary: 'The kinds that are loaded, and where they come from',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(Plugin) },
    },
    handle: async (call) => {
      const all = await listPlugins(http.core, call.actor)
      const rest = sortedAfter(all, call.query.cursor, ({ name }) => name)
      return firstPage(call, rest, pageLimit(call.query.limit), ({ name }) => name).map(present)
    },
  })
}

function addingRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/plugins', {
    schema: {
      summary: 'Add a plugin that lies in `plugin_dir`, or replace its bytes; only over `admin.sock`',
      description:
        'The server starts a copy of the file `<sha256>` in `plugin_dir` once, so that it describes itself, and from then on starts only these bytes. `mayfly plugin add` puts the file there. Any request but one over `admin.sock` without a token is refused.',
      tags,
      body: AddPlugin,
      response: { 200: Plugin },
    },
    handle: async ({ actor, body }) => present(await addPlugin(core, actor, body)),
  })

  addRoute(http, 'DELETE /v1/admin/plugins/:name', {
    schema: {
      summary: 'Remove a plugin that no backend needs; only over `admin.sock`',
      tags,
      params: KindParam,
      response: { 204: Type.Null() },
    },
    handle: async ({ actor, params, reply }) => {
      await removePlugin(core, actor, params.name)
      return reply.code(204).send()
    },
  })
}

function reloadRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/admin/plugins/reload', {
    schema: {
      summary: 'Reopen every backend, those of plugins with new processes',
      tags,
      response: { 200: ReloadedPlugins },
    },
    handle: async ({ actor }) => {
      const plugins = await reloadPlugins(core, actor)
      return { loaded: plugins.length, plugins: plugins.map(present) }
    },
  })

  addRoute(http, 'POST /v1/admin/plugins/:name/reload', {
    schema: {
      summary: 'Reopen the backends of one kind',
      tags,
      params: KindParam,
      response: { 200: ReloadedPlugin },
    },
    handle: async ({ actor, params }) => {
      const plugin = await reloadPlugin(core, actor, params.name)
      return { reloaded: plugin.name, version: plugin.version }
    },
  })
}

function present({ name, version, builtin, pinned }: PluginView) {
  if (pinned === undefined) return { name, version, builtin }
  const { sha256, origin, protocol, runtime, addedAt } = pinned
  const { type } = pinned.description
  const own = type === name ? {} : { own_name: type }
  return { name, ...own, version, builtin, sha256, origin, protocol, runtime, added_at: timestamp(addedAt) }
}
