import { requireLifetime } from '../../domain/duration.ts'
import { COLLECT_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import type { AgentGrantRow } from '../../store/schema/rows.ts'
import { prepareAgent, requireHeld } from '../agents/create-agent.ts'
import { actorOf, audit } from '../audit/entry.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { readScopes } from '../held-scopes.ts'
import { answerOf, decisionRefused, type Enrollment, findPending } from './pending-enrollment.ts'

export interface ApproveCommand {
  /** Instead of the asked ones. */
  readonly scopes?: readonly string[] | undefined
  /** A duration as it was written: of the agent, or of the extra scopes. */
  readonly expires_in?: string | undefined
  readonly note?: string | undefined
}

type Parts = Pick<Core, 'store' | 'ids' | 'keys' | 'hasher' | 'sealer' | 'settings' | 'denials'>

interface Decision {
  readonly scopes: readonly string[]
  readonly lifetimeMs: number | undefined
  readonly note: string | null
}

/**
 * Throws `enrollment_not_found`, `gone` when it has expired, `conflict` when it is decided or its name is
 * taken, `invalid_request`, and `insufficient_scope` for what the caller does not hold, or not for so long.
 */
export async function approveEnrollment(
  core: Parts,
  caller: Caller,
  id: string,
  command: ApproveCommand,
  origin: Origin,
): Promise<Enrollment> {
  const row = await findPending(core, id)
  const scopes = [...new Set(command.scopes ?? readScopes(row.scopes))]
  requireScopes(scopes)
  const asked = row.lifetime_ms ?? undefined
  const lifetimeMs =
    command.expires_in === undefined ? asked : requireLifetime(command.expires_in, 'expires_in')
  requireHeld(core, caller, { scopes, lifetimeMs }, origin)
  const decision = { scopes, lifetimeMs, note: command.note ?? null }
  return row.agent_id === null
    ? approveAgent(core, caller, row, decision, origin)
    : approveAmendment(core, caller, row, row.agent_id, decision, origin)
}

function decided(core: Parts, caller: Caller, { scopes, lifetimeMs, note }: Decision) {
  return {
    status: 'approved',
    scopes: JSON.stringify(scopes),
    lifetime_ms: lifetimeMs ?? null,
    decided_at: core.store.now(),
    decided_by: actorOf(caller),
    decision_note: note,
  }
}

async function approveAgent(
  core: Parts,
  caller: Caller,
  row: Enrollment,
  decision: Decision,
  origin: Origin,
): Promise<Enrollment> {
  const { scopes, lifetimeMs } = decision
  const taken = new Problem('conflict', { message: 'An agent of this name exists already.' })
  if ((await core.store.agents.findByName(row.name_key)) !== undefined) throw taken
  const publicJwk = JSON.parse(row.public_jwk ?? 'null') as Record<string, unknown>
  const plan = { name: row.name, scopes, lifetimeMs, publicJwk, createdBy: actorOf(caller) }
  const made = await prepareAgent(core, plan)
  const { agent } = made
  const base = decided(core, caller, decision)
  const set = {
    ...base,
    agent_id: agent.id,
    answer: core.sealer.seal('enrollments', row.id, 'answer', answerOf(made)),
    collect_until: base.decided_at + COLLECT_MS,
  }
  const details = { enrollment_id: row.id, expires_at: agent.expires_at }
  const outcome = await commit(core, [
    core.store.enrollments.decide(row.id, set),
    ...whileUnchanged(caller),
    ...made.steps,
    audit(core, caller, origin, {
      action: 'enrollment.approved',
      agent,
      scopes,
      details: noted(details, decision),
    }),
    audit(core, caller, origin, { action: 'agent.created', agent, scopes, details }),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw outcome.reason === 'unique' ? taken : await decisionRefused(core, row.id, outcome)
  return { ...row, ...set }
}

/** The extra scopes are a grant of their own, so that they can end by themselves. */
async function approveAmendment(
  core: Parts,
  caller: Caller,
  row: Enrollment,
  agentId: string,
  decision: Decision,
  origin: Origin,
): Promise<Enrollment> {
  const { scopes, lifetimeMs } = decision
  const set = decided(core, caller, decision)
  const grant: AgentGrantRow = {
    id: core.ids.body(),
    agent_id: agentId,
    scopes: set.scopes,
    created_at: set.decided_at,
    expires_at: lifetimeMs === undefined ? null : set.decided_at + lifetimeMs,
  }
  const agent = { id: agentId, name: row.name }
  const details = { enrollment_id: row.id, expires_at: grant.expires_at }
  const outcome = await commit(core, [
    core.store.enrollments.decide(row.id, set),
    ...whileUnchanged(caller),
    ...core.store.agents.touch(agentId),
    { op: 'insert', table: 'agent_grants', row: grant },
    audit(core, caller, origin, {
      action: 'enrollment.approved',
      agent,
      scopes,
      details: noted(details, decision),
    }),
    audit(core, caller, origin, {
      action: 'agent.scopes_changed',
      agent,
      scopes,
      details: { ...details, change: 'added' },
    }),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw await decisionRefused(core, row.id, outcome)
  return { ...row, ...set }
}

function noted(details: Record<string, unknown>, { note }: Decision): Record<string, unknown> {
  return note === null ? details : { ...details, note }
}
