import { asProblem } from '../backends/call-upstream.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { askBackend } from './ask-backend.ts'
import { claimSteps } from './idempotency.ts'
import {
  type IssuedCredential,
  issuedEntry,
  type Plan,
  presentPlan,
  recordOf,
  rowOf,
  StalePlan,
} from './issue-plan.ts'

/** For a kind without an upstream: nothing can be left behind, so the record and its entry are one commit. */
export async function issueLocally(core: Core, plan: Plan): Promise<IssuedCredential> {
  const { issued, expiresAt, upstreamExpiresAt } = await askBackend(core, plan).catch((error: unknown) => {
    throw recordRefusal(core, plan, error)
  })
  const reply = presentPlan(plan, issued, expiresAt, upstreamExpiresAt)
  const row = rowOf(plan, {
    state: 'active',
    revocation: 'none',
    expires_at: expiresAt,
    upstream_expires_at: upstreamExpiresAt,
    due_at: expiresAt,
    secret_hash: core.hasher.hash(reply.token),
  })
  const change = [
    ...recordOf(plan, row),
    ...claimSteps(core, plan, reply),
    issuedEntry(core, plan, issued.facts),
  ]
  const outcome = await commit(core, change, { code: 'audit_unavailable' })
  if (!outcome.done) throw new StalePlan()
  return reply
}

function recordRefusal(core: Core, plan: Plan, error: unknown): unknown {
  const { code } = asProblem(error)
  core.denials.record(plan.caller, plan.origin, {
    action: 'credential.issue_failed',
    ...(code === 'invalid_request' ? {} : { outcome: 'failed' }),
    backend: plan.backend.name,
    scopes: plan.scopes,
    ttlMs: plan.ttlMs,
    metadata: plan.metadata,
    details: { code },
  })
  return error
}
