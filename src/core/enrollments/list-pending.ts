import { type Enrollment, type EnrollmentStatus, enrollmentStatusAt } from '../../domain/enrollment.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import type { Core } from '../context.ts'

export interface PendingQuery {
  /** Default: `pending`. */
  readonly status?: EnrollmentStatus | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

/** Oldest first. Leaves out enrollments that have expired but are not marked so yet. */
export async function listPending(
  core: Pick<Core, 'store'>,
  query: PendingQuery,
): Promise<{ enrollments: Enrollment[]; next: string | undefined }> {
  const { status = 'pending', cursor, limit = DEFAULT_PAGE } = query
  const rows = await core.store.enrollments.list(status, cursor, limit + 1)
  const page = rows.slice(0, limit)
  const now = core.store.now()
  return {
    enrollments: page.filter((one) => enrollmentStatusAt(one, now) === status),
    next: rows.length > limit ? page.at(-1)?.id : undefined,
  }
}
