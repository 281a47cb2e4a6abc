import { Problem } from '../../domain/problems.ts'
import type { Change, Step } from '../../store/engine/change.ts'
import {
  asProblem,
  certainAt,
  claimedUntil,
  describe,
  type Entered,
  enterUpstream,
  isRefusal,
  isToldAlready,
} from '../backends/call-upstream.ts'
import { SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { askBackend, type BackendAnswer, replyOf } from './ask-backend.ts'
import { claimSteps, keepReplySteps, releaseClaim } from './idempotency.ts'
import {
  auditAttempt,
  type Granted,
  type IssuedCredential,
  newCredential,
  StalePlan,
  whileGranted,
  whileInRun,
} from './issue-attempt.ts'
import { withPlaces } from './limits.ts'
import { settleUpstream, unfindable } from './settle-upstream.ts'

/**
 * For a kind with an upstream: the request is durable before anything exists there, so that no crash point leaves an
 * unrecorded upstream account (ADR 0007). No transaction is open while the upstream works.
 */
export async function issueAtUpstream(core: Core, attempt: Granted): Promise<IssuedCredential> {
  const { credentials, now } = core.store
  const entered = await withPlaces(core, attempt, () => recordRequest(core, attempt))
  const asked = await askUpstream(core, attempt, entered)
  switch (asked.how) {
    case 'issued':
      return activateOrWithdraw(core, attempt, asked.answer)
    case 'refused':
      await recordFailure(
        core,
        attempt,
        failureOf(core, attempt, asked.problem, credentials.fail(attempt.plan.id, now())),
      )
      throw asked.problem
    case 'unknown':
      await recordReclaim(
        core,
        attempt,
        asked.problem,
        reclaimUnseen(core, attempt),
        unfindable(attempt.backend),
      )
      throw asked.problem
    default: {
      const never: never = asked
      return never
    }
  }
}

/** Commits the pending credential with its entry. The breaker is entered first: an upstream known to be down costs no commit. */
async function recordRequest(core: Core, attempt: Granted): Promise<Entered> {
  const entered = enterUpstream(attempt.backend, 'issuing')
  try {
    const change = [
      ...whileGranted(attempt),
      core.store.credentials.insert(pendingCredential(core, attempt)),
      ...claimSteps(core, attempt, undefined),
      auditAttempt(core, attempt, { action: 'credential.requested' }),
    ]
    const outcome = await commit(core, attempt.actor, change, { code: 'audit_unavailable' })
    if (!outcome.done) throw new StalePlan()
    return entered
  } catch (error) {
    entered.pass.cancel()
    throw error
  }
}

function pendingCredential(core: Core, attempt: Granted) {
  const { backend, plan } = attempt
  return newCredential(attempt, {
    state: 'pending',
    revocation: backend.kind.revocation,
    expiresAt: plan.expiresAt,
    dueAt: certainAt(core, plan.now),
  })
}

type Asked =
  | { readonly how: 'issued'; readonly answer: BackendAnswer }
  /** `refused`: nothing exists upstream. `unknown`: something may. */
  | { readonly how: 'refused' | 'unknown'; readonly problem: Problem }

async function askUpstream(core: Core, attempt: Granted, entered: Entered): Promise<Asked> {
  try {
    return { how: 'issued', answer: await askBackend(core, attempt, entered) }
  } catch (error) {
    const problem = asProblem(error, { logged: true })
    const { backend, plan } = attempt
    core.log[isToldAlready(core, backend, error) ? 'debug' : 'warn'](
      {
        request_id: attempt.actor.origin.requestId,
        credential: plan.id,
        backend: backend.name,
        code: problem.code,
        detail: problem.detail,
      },
      'the upstream did not issue',
    )
    return { how: isRefusal(error) ? 'refused' : 'unknown', problem }
  }
}

async function activateOrWithdraw(
  core: Core,
  attempt: Granted,
  answer: BackendAnswer,
): Promise<IssuedCredential> {
  const { id } = attempt.plan
  const { expiresAt, upstreamExpiresAt, handle, facts } = answer
  const reply = replyOf(attempt, answer)
  const secretHash = core.hasher.hash(reply.secret)
  const sealedHandle =
    handle === undefined ? null : core.sealer.seal('credentials', id, 'handle', JSON.stringify(handle))
  const change: Step[] = [
    ...whileInRun(attempt.plan),
    core.store.credentials.activate(id, { expiresAt, upstreamExpiresAt, secretHash, sealedHandle }),
    ...keepReplySteps(core, attempt, reply),
    auditAttempt(core, attempt, { action: 'credential.issued', details: facts }),
  ]
  let problem: unknown
  try {
    if ((await commit(core, attempt.actor, change, { code: 'audit_unavailable' })).done) return reply
    problem = new Problem('conflict', {
      message:
        'The agent, the run or the backend ended, or the credential was revoked, while it was being issued.',
    })
  } catch (error) {
    problem = error
  }
  await withdraw(core, attempt, sealedHandle, problem)
  throw problem
}

/**
 * The upstream has issued a secret that no caller will get: revokes it at once, even where the store can be neither
 * written nor read. The sweeper does what fails here.
 */
async function withdraw(
  core: Core,
  attempt: Granted,
  sealedHandle: string | null,
  problem: unknown,
): Promise<void> {
  const { backend, plan } = attempt
  const leave = (error: unknown) =>
    core.log.warn(
      { credential: plan.id, detail: describe(error) },
      'an issued credential could not be withdrawn at once; the sweeper will do it',
    )
  const now = core.store.now()
  const credential = pendingCredential(core, attempt)
  const times = {
    now,
    dueAt: claimedUntil(core, now),
    // The account is there. Its name is enough to find it, except where the upstream names it only in its answer.
    certain: backend.kind.recovery === 'none' ? Number.MAX_SAFE_INTEGER : now,
  }
  const reclaim = core.store.credentials.reclaim(credential, times, sealedHandle)
  await recordReclaim(core, attempt, asProblem(problem), reclaim).catch(leave)
  await settleUpstream(core, backend, {
    ...credential,
    state: 'revoking',
    endReason: 'interrupted',
    sealedHandle,
  }).catch(leave)
}

/**
 * Due at once. If this node was suspended, only when the call can no longer be under way, because others may have settled
 * the credential before the upstream acted.
 */
function reclaimUnseen(core: Core, attempt: Granted): Step {
  const now = core.store.now()
  const { plan } = attempt
  const isInTime = now < certainAt(core, plan.now)
  const times = {
    now,
    dueAt: isInTime ? now : certainAt(core, now),
    certain: certainAt(core, isInTime ? plan.now : now),
  }
  return core.store.credentials.reclaim(pendingCredential(core, attempt), times, null)
}

/** The end of the credential with its entry; the same `Idempotency-Key` may try again. */
function failureOf(
  core: Core,
  attempt: Granted,
  { code }: Problem,
  end: Step,
  left?: Readonly<Record<string, string>>,
): Change {
  const entry = auditAttempt(core, attempt, {
    action: 'credential.issue_failed',
    outcome: 'failed',
    details: { code, ...left },
  })
  return [end, ...releaseClaim(core, attempt), entry]
}

/** Even if the caller has ended. */
async function recordFailure(core: Core, attempt: Granted, failure: Change): Promise<void> {
  await commit(core, SYSTEM, failure, { urgent: true, code: 'audit_unavailable' })
  attempt.isRecorded = true
}

/**
 * Something may exist upstream, or has just been revoked there, so the store must know in the end: after a lost COMMIT
 * the record may say `active`, and after a failover there may be none.
 */
async function recordReclaim(
  core: Core,
  attempt: Granted,
  problem: Problem,
  reclaim: Step,
  left?: Readonly<Record<string, string>>,
): Promise<void> {
  const failure = failureOf(core, attempt, problem, reclaim, left)
  try {
    await recordFailure(core, attempt, failure)
  } catch (error) {
    core.overdue.add(attempt.plan.id, failure)
    attempt.isRecorded = true
    throw error
  }
}
