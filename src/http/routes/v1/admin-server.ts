import { type ReadConfiguration, reloadServer } from '../../../core/server/reload-server.ts'
import { addRoute, type Http } from '../../routing/route.ts'

export function adminServerRoutes(http: Http, read: ReadConfiguration): void {
  addRoute(http, 'POST /v1/admin/reload', ({ actor }) => reloadServer(http.core, actor, read))
}
