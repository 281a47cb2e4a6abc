import { nameKey } from '../../domain/agent.ts'
import { type Enrollment, type EnrollmentStatus, enrollmentStatusAt } from '../../domain/enrollment.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import type { Core } from '../context.ts'

export interface PendingQuery {
  /** Default: `pending`. */
  readonly status?: EnrollmentStatus | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

export type ListedEnrollment = Enrollment & {
  /** A living agent has the name that a pending enrollment asks for. */
  readonly isTaken: boolean
}

/** Oldest first. Leaves out enrollments that have expired but are not marked so yet. */
export async function listPending(
  core: Pick<Core, 'store'>,
  query: PendingQuery,
): Promise<{ enrollments: ListedEnrollment[]; next: string | undefined }> {
  const { status = 'pending', cursor, limit = DEFAULT_PAGE } = query
  const rows = await core.store.enrollments.list(status, cursor, limit + 1)
  const page = rows.slice(0, limit)
  const now = core.store.now()
  const listed = page.filter((one) => enrollmentStatusAt(one, now) === status)
  const isWaiting = (one: Enrollment) => status === 'pending' && one.type === 'enroll'
  const taken = await core.store.agents.takenNames(listed.filter(isWaiting).map(({ name }) => name))
  return {
    enrollments: listed.map((one) => ({ ...one, isTaken: isWaiting(one) && taken.has(nameKey(one.name)) })),
    next: rows.length > limit ? page.at(-1)?.id : undefined,
  }
}
