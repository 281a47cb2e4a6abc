import { type Enrollment, type EnrollmentStatus, enrollmentStatusAt } from '../../domain/enrollment.ts'
import { isId } from '../../domain/ids.ts'
import { Problem } from '../../domain/problems.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'

/**
 * A request of the caller for more scopes, and its outcome. Throws `enrollment_not_found`, also for another agent's
 * request.
 */
export async function readRequest(
  core: Pick<Core, 'store'>,
  caller: AgentCaller,
  id: string,
): Promise<Enrollment & { readonly status: EnrollmentStatus }> {
  const found = isId('enrollment', id) ? await core.store.enrollments.find(id) : undefined
  if (found === undefined || found.type !== 'amendment' || found.agentId !== caller.agentId)
    throw new Problem('enrollment_not_found')
  return { ...found, status: enrollmentStatusAt(found, core.store.now()) }
}
