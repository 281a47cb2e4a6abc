import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { askBackend, replyOf } from './ask-backend.ts'
import { claimSteps } from './idempotency.ts'
import {
  auditAttempt,
  type Granted,
  type IssuedCredential,
  newCredential,
  StalePlan,
  whileGranted,
} from './issue-attempt.ts'
import { withPlaces } from './limits.ts'

/** For a kind without an upstream: nothing can be left behind, so the record and its entry are one commit. */
export function issueLocally(core: Core, attempt: Granted): Promise<IssuedCredential> {
  return withPlaces(core, attempt, async () => {
    const answer = await askBackend(core, attempt)
    const reply = replyOf(attempt, answer)
    const credential = newCredential(attempt, {
      state: 'active',
      revocation: 'none',
      expiresAt: answer.expiresAt,
      upstreamExpiresAt: answer.upstreamExpiresAt,
      dueAt: answer.expiresAt,
      secretHash: core.hasher.hash(answer.presented),
    })
    const change = [
      ...whileGranted(attempt),
      core.store.credentials.insert(credential),
      ...claimSteps(core, attempt, reply),
      auditAttempt(core, attempt, { action: 'credential.issued', details: answer.facts }),
    ]
    const outcome = await commit(core, attempt.actor, change, { code: 'audit_unavailable' })
    if (!outcome.done) throw new StalePlan()
    return reply
  })
}
