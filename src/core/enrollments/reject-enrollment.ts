import type { Enrollment } from '../../domain/enrollment.ts'
import { actorId, audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { decisionRefused, findPending } from './pending-enrollment.ts'

export interface RejectCommand {
  /** Shown to the agent that enrolled. */
  readonly reason?: string | undefined
}

/** Throws `enrollment_not_found`, `gone` when it has expired and `conflict` when it is decided. */
export async function rejectEnrollment(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor,
  id: string,
  command: RejectCommand,
): Promise<Enrollment> {
  const enrollment = await findPending(core, id)
  const { agentId, name, scopes } = enrollment
  const decision = {
    status: 'rejected',
    decidedAt: core.store.now(),
    decidedBy: actorId(actor),
    decisionNote: command.reason ?? null,
  } as const
  const change = [
    core.store.enrollments.decide(id, decision),
    audit(core, actor, {
      action: 'enrollment.rejected',
      ...(agentId === null ? {} : { agent: { id: agentId, name } }),
      scopes,
      details: {
        enrollment_id: id,
        name,
        reason: command.reason,
      },
    }),
  ]
  const outcome = await commit(core, actor, change, { urgent: true })
  if (!outcome.done) throw await decisionRefused(core, id, outcome)
  return { ...enrollment, ...decision }
}
