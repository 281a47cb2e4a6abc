import { Enroll, Enrolled, EnrollmentId, EnrollmentPoll, ProofHeader } from '../../../api/enrollment.ts'
import { enroll } from '../../../core/enrollments/enroll.ts'
import { statusOf } from '../../../core/enrollments/pending-enrollment.ts'
import { pickUpEnrollment } from '../../../core/enrollments/pick-up-enrollment.ts'
import { ENROLLMENT_POLL_MS } from '../../../domain/limits.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { requireMetadata } from '../metadata.ts'
import { optional, timestamp } from '../wire.ts'

const tags = ['enrollment']

/** For whoever is no agent yet: no token, but a key of its own. */
export function enrollRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'POST /v1/enroll', {
    schema: {
      summary: 'Ask to become an agent, with a public key made on your side',
      description: 'Asking again with the same key and name gives the enrollment that the key has already.',
      tags,
      body: Enroll,
      response: { 200: Enrolled },
    },
    handle: async ({ body, origin }) => {
      requireMetadata(body.metadata)
      const row = await enroll(core, body, origin)
      return {
        id: row.id,
        enrollment_id: row.id,
        status: statusOf(row, row.created_at),
        poll_url: `${core.settings.issuer}/v1/enroll/${row.id}/status`,
        poll_interval_ms: ENROLLMENT_POLL_MS,
        expires_at: timestamp(row.collect_until ?? row.expires_at),
      }
    },
  })

  addRoute(http, 'GET /v1/enroll/:id/status', {
    schema: {
      summary: 'How my enrollment stands; once approved, my credentials, encrypted to me',
      description: 'Needs the header Enrollment-Proof. The answer can be fetched for 10 minutes.',
      tags,
      params: EnrollmentId,
      headers: ProofHeader,
      response: { 200: EnrollmentPoll },
    },
    handle: async ({ params, request, origin }) => {
      const header = request.headers['enrollment-proof']
      const proof = typeof header === 'string' ? header : undefined
      const found = await pickUpEnrollment(core, { id: params.id, proof }, origin)
      const row = found.enrollment
      return {
        id: row.id,
        status: found.status,
        poll_interval_ms: ENROLLMENT_POLL_MS,
        expires_at: timestamp(row.collect_until ?? row.expires_at),
        ...optional('sealed', found.sealed),
        ...(row.collected_at === null ? {} : { collected_at: timestamp(row.collected_at) }),
        ...(found.status === 'rejected' ? optional('reason', row.decision_note) : {}),
      }
    },
  })
}
