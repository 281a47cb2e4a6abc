import { enroll } from '../../../core/enrollments/enroll.ts'
import { pickUpEnrollment } from '../../../core/enrollments/pick-up-enrollment.ts'
import { unknownBackendWarnings } from '../../../core/granting-backend.ts'
import { enrollmentStatusAt } from '../../../domain/enrollment.ts'
import { ENROLLMENT_POLL_MS } from '../../../domain/limits.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { requireMetadata } from '../issue-to-caller.ts'
import { optional, presentWarnings, timestamp, timestampOrNull } from '../wire.ts'

/** For clients that are not agents yet: they have a key of their own instead of a token. */
export function enrollRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/enroll', async ({ actor, body }) => {
    requireMetadata(body.metadata)
    const warnings = await unknownBackendWarnings(core, body.scopes ?? [])
    const enrollment = await enroll(core, actor, body)
    const { id, createdAt, expiresAt, collectUntil } = enrollment
    return {
      id,
      enrollment_id: id,
      status: enrollmentStatusAt(enrollment, createdAt),
      poll_url: `${core.settings.issuer}/v1/enroll/${id}/status`,
      poll_interval_ms: ENROLLMENT_POLL_MS,
      expires_at: timestamp(collectUntil ?? expiresAt),
      ...presentWarnings(warnings),
    }
  })

  addRoute(http, 'GET /v1/enroll/:id/status', async ({ actor, params, request }) => {
    const header = request.headers['enrollment-proof']
    const proof = typeof header === 'string' ? header : undefined
    const found = await pickUpEnrollment(core, actor, { id: params.id, proof })
    const { id, expiresAt, collectUntil, collectedAt, decisionNote } = found.enrollment
    return {
      id,
      status: found.status,
      poll_interval_ms: ENROLLMENT_POLL_MS,
      expires_at: timestamp(collectUntil ?? expiresAt),
      ...optional('sealed', found.sealed),
      ...optional('collected_at', timestampOrNull(collectedAt)),
      ...(found.status === 'rejected' ? optional('reason', decisionNote) : {}),
    }
  })
}
