import { testReceiver } from '../../../core/notifications/test-receiver.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optional } from '../wire.ts'

/** Receivers of notifications; they are configuration. */
export function adminNotifyRoutes(http: Http): void {
  addRoute(http, 'POST /v1/admin/notify/:name/test', async ({ actor, params }) => {
    const { name, isTaken, reason } = await testReceiver(http.core, actor, params.name)
    return { name, taken: isTaken, ...optional('reason', reason) }
  })
}
