import { actorOf, audit } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { decisionRefused, type Enrollment, findPending } from './pending-enrollment.ts'

export interface RejectCommand {
  /** Told to whoever enrolled. */
  readonly reason?: string | undefined
}

/** Throws `enrollment_not_found`, `gone` when it has expired and `conflict` when it is decided. */
export async function rejectEnrollment(
  core: Pick<Core, 'store' | 'ids'>,
  caller: Caller,
  id: string,
  command: RejectCommand,
  origin: Origin,
): Promise<Enrollment> {
  const row = await findPending(core, id)
  const set = {
    status: 'rejected',
    decided_at: core.store.now(),
    decided_by: actorOf(caller),
    decision_note: command.reason ?? null,
  }
  const outcome = await commit(core, [
    core.store.enrollments.decide(row.id, set),
    audit(core, caller, origin, {
      action: 'enrollment.rejected',
      ...(row.agent_id === null ? {} : { agent: { id: row.agent_id, name: row.name } }),
      scopes: row.scopes,
      details: {
        enrollment_id: row.id,
        name: row.name,
        ...(command.reason === undefined ? {} : { reason: command.reason }),
      },
    }),
  ])
  if (!outcome.done) throw await decisionRefused(core, row.id, outcome)
  return { ...row, ...set }
}
