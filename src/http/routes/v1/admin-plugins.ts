import { Type } from 'typebox'
import { PageQuery, Plugin, ReloadedPlugin, ReloadedPlugins } from '../../../api/admin.ts'
import { name } from '../../../api/shared.ts'
import { listPlugins, reloadPlugin, reloadPlugins } from '../../../core/backends/reload-plugins.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage, pageLimit, sortedAfter } from '../paging.ts'

const tags = ['admin: plugins']

export function adminPluginRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/plugins', {
    schema: {
      summary: 'The kinds that are loaded',
      tags,
      querystring: PageQuery,
      response: { 200: Type.Array(Plugin) },
    },
    handle: (call) => {
      const rest = sortedAfter(listPlugins(core), call.query.cursor, ({ name }) => name)
      return firstPage(call, rest, pageLimit(call.query.limit), ({ name }) => name)
    },
  })

  addRoute(http, 'POST /v1/admin/plugins/reload', {
    schema: {
      summary: 'Reopen every backend',
      tags,
      response: { 200: ReloadedPlugins },
    },
    handle: async ({ actor }) => {
      const plugins = await reloadPlugins(core, actor)
      return { loaded: plugins.length, plugins }
    },
  })

  addRoute(http, 'POST /v1/admin/plugins/:name/reload', {
    schema: {
      summary: 'Reopen the backends of one kind',
      tags,
      params: Type.Object({ name: name('The kind.', 'postgres') }),
      response: { 200: ReloadedPlugin },
    },
    handle: async ({ actor, params }) => {
      const plugin = await reloadPlugin(core, actor, params.name)
      return { reloaded: plugin.name, version: plugin.version }
    },
  })
}
