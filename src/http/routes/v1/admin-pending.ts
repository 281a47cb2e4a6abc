import { Type } from 'typebox'
import { Approve, EnrollmentId, PendingEnrollment, PendingQuery, Reject } from '../../../api/enrollment.ts'
import { approveEnrollment } from '../../../core/enrollments/approve-enrollment.ts'
import { listPending } from '../../../core/enrollments/list-pending.ts'
import { type Enrollment, statusOf } from '../../../core/enrollments/pending-enrollment.ts'
import { rejectEnrollment } from '../../../core/enrollments/reject-enrollment.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { optionalBody } from '../../server/validation.ts'
import { linkNext } from '../paging.ts'
import { optional, timestamp } from '../wire.ts'

const tags = ['admin: enrollments']

export function adminPendingRoutes(http: Http): void {
  const { core } = http

  addRoute(http, 'GET /v1/admin/pending', {
    schema: {
      summary: 'Enrollments and requests that wait for a decision, oldest first; decided ones by status',
      tags,
      querystring: PendingQuery,
      response: { 200: Type.Array(PendingEnrollment) },
    },
    handle: async ({ query, request, reply }) => {
      const { enrollments, next } = await listPending(core, query)
      linkNext(reply, request, next)
      return enrollments.map((row) => present(row, core.store.now()))
    },
  })

  addRoute(http, 'POST /v1/admin/pending/:id/approve', {
    schema: {
      summary: 'Approve, with other scopes or for a while if need be',
      tags,
      params: EnrollmentId,
      body: optionalBody(Approve),
      response: { 200: PendingEnrollment },
    },
    handle: async ({ caller, params, body, origin }) =>
      present(await approveEnrollment(core, caller, params.id, body ?? {}, origin), core.store.now()),
  })

  addRoute(http, 'POST /v1/admin/pending/:id/reject', {
    schema: {
      summary: 'Reject; the reason is told to whoever asked',
      tags,
      params: EnrollmentId,
      body: optionalBody(Reject),
      response: { 200: PendingEnrollment },
    },
    handle: async ({ caller, params, body, origin }) =>
      present(await rejectEnrollment(core, caller, params.id, body ?? {}, origin), core.store.now()),
  })
}

function present(row: Enrollment, now: number) {
  return {
    id: row.id,
    name: row.name,
    type: row.type,
    scopes: JSON.parse(row.scopes),
    public_key_fingerprint: row.fingerprint,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    ip_address: row.ip_address,
    created_at: timestamp(row.created_at),
    expires_at: timestamp(row.expires_at),
    status: statusOf(row, now),
    ...optional('note', row.note === '' ? null : row.note),
    ...optional('reason', row.reason),
    ...(row.lifetime_ms === null ? {} : { expires_in: formatDuration(row.lifetime_ms) }),
    ...optional('agent_id', row.agent_id),
    ...(row.decided_at === null ? {} : { decided_at: timestamp(row.decided_at) }),
    ...optional('decided_by', row.decided_by),
    ...optional('decision_note', row.decision_note),
    ...(row.collected_at === null ? {} : { collected_at: timestamp(row.collected_at) }),
  }
}
