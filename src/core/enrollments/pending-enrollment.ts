import type { Enrollment } from '../../domain/enrollment.ts'
import { isId } from '../../domain/ids.ts'
import { Problem } from '../../domain/problems.ts'
import type { Outcome } from '../../store/engine/change.ts'
import type { CreatedAgent } from '../agents/create-agent.ts'
import type { Core } from '../context.ts'

/** An undecided enrollment. Throws `enrollment_not_found`, `gone` when it has expired, `conflict` when it is decided. */
export async function findPending(core: Pick<Core, 'store'>, id: string): Promise<Enrollment> {
  const enrollment = isId('enrollment', id) ? await core.store.enrollments.find(id) : undefined
  if (enrollment === undefined) throw new Problem('enrollment_not_found')
  const { status, expiresAt } = enrollment
  if (status === 'pending' && expiresAt > core.store.now()) return enrollment
  if (status === 'pending' || status === 'expired')
    throw new Problem('gone', { message: 'This enrollment has expired.' })
  throw alreadyDecided()
}

/** Why the store refused a decision that was still open a moment ago. */
export async function decisionRefused(
  core: Pick<Core, 'store'>,
  id: string,
  outcome: Extract<Outcome, { done: false }>,
): Promise<Problem> {
  if (outcome.step > 0)
    return new Problem('conflict', { message: 'The request conflicts with a change made at the same time.' })
  try {
    await findPending(core, id)
    return alreadyDecided()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

function alreadyDecided(): Problem {
  return new Problem('conflict', { message: 'This enrollment has already been decided.' })
}

/** The plain text of `Enrollment.sealedAnswer`, which the agent receives once. */
export function answerOf({ agent, token, clientSecret }: CreatedAgent): string {
  return JSON.stringify({
    token,
    oidc: { client_id: agent.clientId, client_secret: clientSecret },
    scopes: agent.scopes,
    agent_id: agent.id,
    // A policy may have added a suffix.
    agent_name: agent.name,
    signing_key_id: agent.signingKeyId,
    signing_email: agent.signingEmail,
  })
}
