import { RequestedScopes, RequestScopes } from '../../../api/enrollment.ts'
import { requestScopes } from '../../../core/enrollments/request-scopes.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optional, timestamp } from '../wire.ts'

export function requestRoutes(http: Http): void {
  addRoute(http, 'POST /v1/request', {
    schema: {
      summary: 'Request more scopes; an administrator decides',
      tags: ['agent'],
      body: RequestScopes,
      response: { 200: RequestedScopes },
    },
    handle: async ({ actor, body }) => {
      const { id, scopes, reason, lifetimeMs, createdAt, expiresAt } = await requestScopes(
        http.core,
        actor,
        body,
      )
      return {
        id,
        status: 'pending',
        scopes,
        ...optional('reason', reason),
        ...(lifetimeMs === null ? {} : { expires_in: formatDuration(lifetimeMs) }),
        created_at: timestamp(createdAt),
        expires_at: timestamp(expiresAt),
      }
    },
  })
}
