import { queryAudit } from '../../../core/audit/query-audit.ts'
import { inTurn } from '../../../core/turns.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { presentEntry } from '../present-audit.ts'

export function auditRoutes(http: Http): void {
  addRoute(http, 'GET /api/v1/audit', async ({ actor, query }) => {
    const page = await inTurn(http.core, actor.caller, () => queryAudit(http.core, actor.caller, query))
    return { entries: page.items.map(presentEntry), next_cursor: page.next ?? null }
  })
}
