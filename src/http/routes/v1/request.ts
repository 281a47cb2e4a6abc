import { RequestedScopes, RequestScopes } from '../../../api/enrollment.ts'
import { requestScopes } from '../../../core/enrollments/request-scopes.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optional, timestamp } from '../wire.ts'

export function requestRoutes(http: Http): void {
  addRoute(http, 'POST /v1/request', {
    schema: {
      summary: 'Ask for more scopes; an administrator decides',
      tags: ['agent'],
      body: RequestScopes,
      response: { 200: RequestedScopes },
    },
    handle: async ({ caller, body, origin }) => {
      const row = await requestScopes(http.core, caller, body, origin)
      return {
        id: row.id,
        status: 'pending',
        scopes: JSON.parse(row.scopes),
        ...optional('reason', row.reason),
        ...(row.lifetime_ms === null ? {} : { expires_in: formatDuration(row.lifetime_ms) }),
        created_at: timestamp(row.created_at),
        expires_at: timestamp(row.expires_at),
      }
    },
  })
}
