import { Type } from 'typebox'
import { BackendInfo, BackendList } from '../../../api/api-v1.ts'
import { name } from '../../../api/shared.ts'
import { listBackends, readBackend } from '../../../core/backends/list-backends.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { presentBackend } from '../present-backend.ts'

const tags = ['backends']

export function backendRoutes(http: Http): void {
  addRoute(http, 'GET /api/v1/backends', {
    schema: {
      summary: 'All backends; their configuration is never shown here',
      tags,
      response: { 200: BackendList },
    },
    handle: async ({ actor }) => ({
      backends: (await listBackends(http.core, actor.caller)).map(presentBackend),
    }),
  })

  addRoute(http, 'GET /api/v1/backends/:id', {
    schema: {
      summary: 'One backend',
      tags,
      params: Type.Object({ id: name('Name of the backend.', 'orders') }),
      response: { 200: BackendInfo },
    },
    handle: async ({ actor, params }) =>
      presentBackend(await readBackend(http.core, actor.caller, params.id)),
  })
}
