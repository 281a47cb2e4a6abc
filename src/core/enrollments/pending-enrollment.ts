import { isId } from '../../domain/ids.ts'
import { Problem } from '../../domain/problems.ts'
import type { Outcome } from '../../store/engine/change.ts'
import type { EnrollmentRow } from '../../store/schema/rows.ts'
import type { CreatedAgent } from '../agents/create-agent.ts'
import type { Core } from '../context.ts'

export type Enrollment = EnrollmentRow
export type EnrollmentStatus = 'pending' | 'approved' | 'rejected' | 'expired'

/** What a request has while nobody has decided on it. */
export const UNDECIDED = {
  status: 'pending',
  note: null,
  decided_at: null,
  decided_by: null,
  decision_note: null,
  answer: null,
  collect_until: null,
  collected_at: null,
  erase_at: null,
} as const

/** As it stands at `now`, whether or not the job that expires has been there already. */
export function statusOf(row: Enrollment, now: number): EnrollmentStatus {
  if (row.status === 'pending') return row.expires_at <= now ? 'expired' : 'pending'
  if (row.status === 'approved')
    return row.collect_until !== null && row.collect_until <= now ? 'expired' : 'approved'
  return row.status === 'rejected' ? 'rejected' : 'expired'
}

/** One that may be decided. Throws `enrollment_not_found`, `gone` when it has expired, `conflict` when it is decided. */
export async function findPending(core: Pick<Core, 'store'>, id: string): Promise<Enrollment> {
  const row = isId('enrollment', id) ? await core.store.enrollments.find(id) : undefined
  if (row === undefined) throw new Problem('enrollment_not_found')
  if (row.status === 'pending' && row.expires_at > core.store.now()) return row
  if (row.status === 'pending' || row.status === 'expired')
    throw new Problem('gone', { message: 'This enrollment has expired.' })
  throw alreadyDecided()
}

/** Why a decision that was still open a moment ago was refused by the store. */
export async function decisionRefused(
  core: Pick<Core, 'store'>,
  id: string,
  outcome: Extract<Outcome, { done: false }>,
): Promise<Problem> {
  if (outcome.step > 0)
    return new Problem('conflict', { message: 'The request conflicts with a change made meanwhile.' })
  try {
    await findPending(core, id)
    return alreadyDecided()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

function alreadyDecided(): Problem {
  return new Problem('conflict', { message: 'This enrollment has been decided already.' })
}

/** What the agent will be told once: plain text to be sealed into `enrollments.answer`. */
export function answerOf(made: CreatedAgent): string {
  const { agent } = made
  return JSON.stringify({
    token: made.token,
    oidc: { client_id: agent.client_id, client_secret: made.clientSecret },
    scopes: JSON.parse(agent.scopes) as string[],
    agent_id: agent.id,
    signing_key_id: agent.signing_key_id,
    signing_email: agent.signing_email,
  })
}
