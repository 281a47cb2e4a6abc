import { readRequest } from '../../../core/enrollments/read-request.ts'
import { requestScopes } from '../../../core/enrollments/request-scopes.ts'
import { scopeWarnings } from '../../../core/granting-backend.ts'
import { formatDuration } from '../../../domain/duration.ts'
import type { Enrollment } from '../../../domain/enrollment.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optional, presentWarnings, timestamp, timestampOrNull } from '../wire.ts'

export function requestRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/request', async ({ actor, body }) => {
    const warnings = await scopeWarnings(core, body.scopes)
    return { ...present(await requestScopes(core, actor, body)), ...presentWarnings(warnings) }
  })

  addRoute(http, 'GET /v1/request/:id', async ({ actor, params }) =>
    present(await readRequest(core, actor.caller, params.id)),
  )
}

function present(request: Enrollment) {
  const { id, status, scopes, reason, lifetimeMs, createdAt, expiresAt, decidedAt, decisionNote } = request
  return {
    id,
    status,
    scopes,
    ...optional('reason', reason),
    ...(lifetimeMs === null ? {} : { expires_in: formatDuration(lifetimeMs) }),
    created_at: timestamp(createdAt),
    expires_at: timestamp(expiresAt),
    ...optional('decided_at', timestampOrNull(decidedAt)),
    // The note of an approval is for administrators.
    ...(status === 'rejected' ? optional('decision_note', decisionNote) : {}),
  }
}
