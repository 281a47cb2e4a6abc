import { Enroll, Enrolled, EnrollmentId, EnrollmentPoll, ProofHeader } from '../../../api/enrollment.ts'
import { enroll } from '../../../core/enrollments/enroll.ts'
import { pickUpEnrollment } from '../../../core/enrollments/pick-up-enrollment.ts'
import { unknownBackendWarnings } from '../../../core/granting-backend.ts'
import { enrollmentStatusAt } from '../../../domain/enrollment.ts'
import { ENROLLMENT_POLL_MS } from '../../../domain/limits.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { requireMetadata } from '../metadata.ts'
import { optional, presentWarnings, timestamp } from '../wire.ts'

const tags = ['enrollment']

/** For clients that are not agents yet: they have a key of their own instead of a token. */
export function enrollRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/enroll', {
    schema: {
      summary: 'Ask to become an agent, with a public key that you have made',
      description: 'Asking again with the same key and name returns the existing enrollment.',
      tags,
      body: Enroll,
      response: { 200: Enrolled },
    },
    handle: async ({ actor, body }) => {
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
    },
  })

  addRoute(http, 'GET /v1/enroll/:id/status', {
    schema: {
      summary: 'The status of my enrollment and, once approved, my encrypted credentials',
      description: 'Requires the header Enrollment-Proof. The answer can be fetched for 10 minutes.',
      tags,
      params: EnrollmentId,
      headers: ProofHeader,
      response: { 200: EnrollmentPoll },
    },
    handle: async ({ actor, params, request }) => {
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
        ...(collectedAt === null ? {} : { collected_at: timestamp(collectedAt) }),
        ...(found.status === 'rejected' ? optional('reason', decisionNote) : {}),
      }
    },
  })
}
