import { setImmediate } from 'node:timers/promises'
import { nameKey } from '../../domain/agent.ts'
import { type Enrollment, type EnrollmentStatus, enrollmentStatusAt } from '../../domain/enrollment.ts'
import { isId } from '../../domain/ids.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import type { Page, PageQuery } from '../page.ts'

export interface PendingQuery extends PageQuery {
  /** Default: `pending`. */
  readonly status?: EnrollmentStatus | undefined
}

export type ListedEnrollment = Enrollment & {
  /** As it is now: the job that expires enrollments may not have come to it. */
  readonly status: EnrollmentStatus
  /** A living agent has the name that a pending enrollment asks for. */
  readonly isTaken: boolean
}

/** Anybody may enroll with 24 KiB, so a page also ends at this size. */
const PAGE_BYTES = 512 * 1024
/** Rows that are read at once. */
const ROWS = 20

/** Oldest first. Leaves out enrollments that have expired but are not marked so yet. */
export async function listPending(
  core: Pick<Core, 'store'>,
  query: PendingQuery,
): Promise<Page<ListedEnrollment>> {
  const { status = 'pending', cursor, limit = DEFAULT_PAGE } = query
  const { page, isLast } = await readPage(core, status, cursor, limit)
  const now = core.store.now()
  const listed = page.filter((one) => enrollmentStatusAt(one, now) === status)
  const isWaiting = (one: Enrollment) => status === 'pending' && one.type === 'enroll'
  const taken = await core.store.agents.takenNames(listed.filter(isWaiting).map(({ name }) => name))
  return {
    items: listed.map((one) => ({ ...one, status, isTaken: isWaiting(one) && taken.has(nameKey(one.name)) })),
    next: isLast ? undefined : page.at(-1)?.id,
  }
}

/** One, pending or decided. Throws `enrollment_not_found`. */
export async function readPending(core: Pick<Core, 'store'>, id: string): Promise<ListedEnrollment> {
  const found = isId('enrollment', id) ? await core.store.enrollments.find(id) : undefined
  if (found === undefined) throw new Problem('enrollment_not_found')
  const status = enrollmentStatusAt(found, core.store.now())
  const asksForName = status === 'pending' && found.type === 'enroll'
  const isTaken = asksForName && (await core.store.agents.takenNames([found.name])).size > 0
  return { ...found, status, isTaken }
}

async function readPage(
  { store }: Pick<Core, 'store'>,
  status: EnrollmentStatus,
  cursor: string | undefined,
  limit: number,
): Promise<{ readonly page: Enrollment[]; readonly isLast: boolean }> {
  const page: Enrollment[] = []
  for (let bytes = 0; ; ) {
    const rows = await store.enrollments.list(status, page.at(-1)?.id ?? cursor, ROWS + 1)
    for (const [index, row] of rows.slice(0, ROWS).entries()) {
      page.push(row)
      bytes += JSON.stringify([row.scopes, row.metadata]).length
      const isLast = index + 1 === rows.length
      if (page.length === limit || bytes >= PAGE_BYTES) return { page, isLast }
    }
    if (rows.length <= ROWS) return { page, isLast: true }
    await setImmediate()
  }
}
