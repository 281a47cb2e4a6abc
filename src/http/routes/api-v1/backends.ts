import { listBackends, readBackend } from '../../../core/backends/list-backends.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { presentBackend } from '../present-backend.ts'

export function backendRoutes(http: Http): void {
  addRoute(http, 'GET /api/v1/backends', async ({ actor }) => ({
    backends: (await listBackends(http.core, actor.caller)).map(presentBackend),
  }))

  addRoute(http, 'GET /api/v1/backends/:id', async ({ actor, params }) =>
    presentBackend(await readBackend(http.core, actor.caller, params.id)),
  )
}
