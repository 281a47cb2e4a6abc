import type { Issued } from '../../backends/kind.ts'
import { Problem, type ProblemCode } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import { asProblem, certainAt, describe, refusedForCertain } from '../backends/call-upstream.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { askBackend, type BackendAnswer } from './ask-backend.ts'
import { claimSteps, forgetClaim, keepReplyStep } from './idempotency.ts'
import {
  type IssuedCredential,
  issuedEntry,
  type Plan,
  presentPlan,
  recordOf,
  rowOf,
  StalePlan,
} from './issue-plan.ts'
import { settleUpstream } from './settle-upstream.ts'

/**
 * For a kind with an upstream: the intent is durable before anything exists there, so that from no crash point
 * an upstream account survives unrecorded. No transaction is open while the upstream works. `onRecorded`: the
 * intent is durable, and counted by whoever counts.
 */
export async function issueAtUpstream(
  core: Core,
  plan: Plan,
  onRecorded: () => void,
): Promise<IssuedCredential> {
  await recordIntent(core, plan)
  onRecorded()
  let signed: BackendAnswer
  try {
    signed = await askBackend(core, plan)
  } catch (error) {
    await recordFailure(core, plan, error)
    throw asProblem(error)
  }
  return activate(core, plan, signed)
}

async function recordIntent(core: Core, plan: Plan): Promise<void> {
  const wait = plan.backend.breaker.wait()
  if (wait > 0) throw new Problem('backend_unavailable', { retryAfterSeconds: wait })
  const intent = [
    ...recordOf(plan, intentOf(core, plan)),
    ...claimSteps(core, plan, undefined),
    audit(core, plan.caller, plan.origin, {
      action: 'credential.requested',
      backend: plan.backend.name,
      credentialId: plan.id,
      scopes: plan.scopes,
      ttlMs: plan.ttlMs,
      metadata: plan.metadata,
    }),
  ]
  const outcome = await commit(core, intent, { code: 'audit_unavailable' })
  if (!outcome.done) throw new StalePlan()
}

function intentOf(core: Core, plan: Plan): CredentialRow {
  const { revocation } = plan.backend.kind
  const dueAt = certainAt(core, plan.now)
  return rowOf(plan, { state: 'pending', revocation, expires_at: plan.expiresAt, due_at: dueAt })
}

async function activate(core: Core, plan: Plan, signed: BackendAnswer): Promise<IssuedCredential> {
  const { issued, expiresAt, upstreamExpiresAt } = signed
  const reply = presentPlan(plan, issued, expiresAt, upstreamExpiresAt)
  const handle = sealHandle(core, plan.id, issued)
  const change: Step[] = [
    core.store.credentials.activate(plan.id, {
      expires_at: expiresAt,
      upstream_expires_at: upstreamExpiresAt,
      due_at: expiresAt,
      secret_hash: core.hasher.hash(reply.token),
      handle,
    }),
    ...keepReplyStep(core, plan, reply),
    issuedEntry(core, plan, issued.facts),
  ]
  let kept = false
  try {
    kept = (await commit(core, change, { code: 'audit_unavailable' })).done
  } catch (error) {
    await undo(core, plan, issued)
    throw error
  }
  if (kept) return reply
  // The agent or the backend ended meanwhile, or it was revoked itself, or the sweeper took it for interrupted: it
  // must not outlive that.
  await undo(core, plan, issued)
  throw new Problem('conflict', {
    message: 'The agent or the backend ended, or the credential was revoked, while it was being issued.',
  })
}

/**
 * The upstream has it and nobody will be told its secret: withdrawn at once, even where the store can be neither
 * written nor read. What fails here the sweeper does, from the row that is still pending.
 */
async function undo(core: Core, plan: Plan, issued: Issued): Promise<void> {
  const failed = (error: unknown) =>
    core.log.warn(
      { credential: plan.id, detail: describe(error) },
      'an issued credential could not be undone at once; the sweeper will',
    )
  try {
    const handle = sealHandle(core, plan.id, issued)
    const row = await core.store.credentials.find(plan.id).catch((error: unknown) => {
      failed(error)
      return intentOf(core, plan)
    })
    if (row === undefined) return
    await withdraw(core, plan, row.state, handle).catch(failed)
    await settleUpstream(core, plan.backend, {
      ...row,
      state: 'revoking',
      handle,
      end_reason: row.end_reason ?? 'interrupted',
    })
  } catch (error) {
    failed(error)
  }
}

async function withdraw(core: Core, plan: Plan, state: string, handle: string | null): Promise<void> {
  const { store } = core
  const now = store.now()
  const dueAt = certainAt(core, plan.now)
  if (state === 'pending') {
    await store.commit(
      [
        store.credentials.interrupt(plan.id, now, dueAt, handle),
        ...forgetClaim(core, plan),
        failedEntry(core, plan, 'audit_unavailable'),
      ],
      { urgent: true },
    )
  } else if (state === 'revoked') {
    // This node stood still meanwhile, and others have looked for it in vain.
    await store.commit(
      [
        store.credentials.reopen(plan.id, dueAt, handle),
        ...forgetClaim(core, plan),
        failedEntry(core, plan, 'conflict'),
      ],
      { urgent: true },
    )
  } else if (state === 'active') {
    // The connection was lost at COMMIT, and it had been kept after all.
    const about = { backend: plan.backend.name, credentialId: plan.id, details: { reason: 'undelivered' } }
    await store.commit(
      [
        store.credentials.endActive(plan.id, 'undelivered', now, dueAt),
        ...forgetClaim(core, plan),
        audit(core, plan.caller, plan.origin, { ...about, action: 'credential.revoked' }),
      ],
      { urgent: true },
    )
  }
}

/**
 * The upstream refused for certain: `failed`. Anything else leaves the outcome unknown: `revoking`, first tried
 * now, and again once the call can no longer be under way; also where others have looked for it already, and settled
 * it, because this node stood still.
 */
async function recordFailure(core: Core, plan: Plan, error: unknown): Promise<void> {
  const problem = asProblem(error)
  core.log.warn(
    { credential: plan.id, backend: plan.backend.name, code: problem.code, detail: problem.detail },
    'the upstream did not issue',
  )
  const now = core.store.now()
  const step = refusedForCertain(error)
    ? core.store.credentials.fail(plan.id, now)
    : core.store.credentials.interrupt(plan.id, now, now, null)
  const entry = failedEntry(core, plan, problem.code)
  const unclaimed = forgetClaim(core, plan)
  const options = { urgent: true, code: 'audit_unavailable' } as const
  const outcome = await commit(core, [step, ...unclaimed, entry], options)
  if (outcome.done) return
  const reopen = core.store.credentials.reopen(plan.id, certainAt(core, now), null)
  if (!refusedForCertain(error) && (await commit(core, [reopen, ...unclaimed, entry], options)).done) return
  // It was ended while the upstream worked, and that goes its way; that nothing was given is recorded all the same.
  await commit(core, [...unclaimed, entry], options)
}

function failedEntry(core: Core, plan: Plan, code: ProblemCode): Step {
  return audit(core, plan.caller, plan.origin, {
    action: 'credential.issue_failed',
    outcome: 'failed',
    backend: plan.backend.name,
    credentialId: plan.id,
    scopes: plan.scopes,
    ttlMs: plan.ttlMs,
    metadata: plan.metadata,
    details: { code },
  })
}

function sealHandle(core: Pick<Core, 'sealer'>, id: string, issued: Issued): string | null {
  return issued.handle === undefined
    ? null
    : core.sealer.seal('credentials', id, 'handle', JSON.stringify(issued.handle))
}
