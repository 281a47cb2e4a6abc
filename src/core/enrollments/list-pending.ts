import { DEFAULT_PAGE } from '../../domain/limits.ts'
import type { Core } from '../context.ts'
import { type Enrollment, type EnrollmentStatus, statusOf } from './pending-enrollment.ts'

export interface PendingQuery {
  /** `pending` where it is not given. */
  readonly status?: EnrollmentStatus | undefined
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

/** Oldest first. What has run out but is not yet marked so is neither pending nor approved any more. */
export async function listPending(
  core: Pick<Core, 'store'>,
  query: PendingQuery,
): Promise<{ enrollments: Enrollment[]; next: string | undefined }> {
  const { status = 'pending', cursor, limit = DEFAULT_PAGE } = query
  const rows = await core.store.enrollments.list(status, cursor, limit + 1)
  const page = rows.slice(0, limit)
  const now = core.store.now()
  return {
    enrollments: page.filter((row) => statusOf(row, now) === status),
    next: rows.length > limit ? page.at(-1)?.id : undefined,
  }
}
