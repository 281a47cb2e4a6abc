import type { AgentGrant } from '../../domain/agent.ts'
import { formatDuration, requireLifetime } from '../../domain/duration.ts'
import type { Enrollment } from '../../domain/enrollment.ts'
import { COLLECT_MS, PLATFORM_AGENT_MS } from '../../domain/limits.ts'
import type { CompiledPolicy } from '../../domain/policy.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { createdUnder, requireBounds } from '../agents/agent-bounds.ts'
import { endAfter, prepareAgent, requireAudiences, requireHeld } from '../agents/create-agent.ts'
import { endSteps, requireMayEnd } from '../agents/end-agent.ts'
import { actorId, audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { requireConfirmed, requireConfirmedScopes } from '../confirm.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { requireUnheld } from '../reserved-name.ts'
import { policyFor, REPLACE } from './judge-enrollment.ts'
import { answerOf, decisionRefused, findPending } from './pending-enrollment.ts'

export interface ApproveCommand {
  /** Instead of the requested ones. */
  readonly scopes?: readonly string[] | undefined
  /** Lifetime of the agent or of the extra scopes: a duration as it was written. */
  readonly expires_in?: string | undefined
  readonly note?: string | undefined
  /** For a new agent; default: those of its policy. */
  readonly audiences?: readonly string[] | undefined
  /** Ends the agent that has the name. */
  readonly replace?: boolean | undefined
}

interface Approval {
  readonly actor: Actor
  readonly enrollment: Enrollment
  /** Of a new agent: the policy that decides about its name, which bounds it as if it had approved it. */
  readonly policy: CompiledPolicy | undefined
  readonly scopes: readonly string[]
  readonly lifetimeMs: number | undefined
  readonly note: string | null
  readonly audiences: readonly string[]
  readonly isReplacing: boolean
}

/**
 * Throws `enrollment_not_found`, `gone` when it has expired, `conflict` when it is decided or its name is
 * taken, `invalid_request`, and `insufficient_scope` for a narrowed token and for scopes that the caller does not hold, or
 * not for that long; replacing an agent also requires the scope to delete it. Throws `confirmation_required` for what gives an
 * admin scope, or replaces an agent.
 */
export async function approveEnrollment(
  core: Core,
  actor: Actor,
  id: string,
  command: ApproveCommand,
): Promise<Enrollment> {
  requireWhole(core, actor)
  const enrollment = await findPending(core, id)
  const approval = await planApproval(core, actor, enrollment, command)
  if (enrollment.type === 'claim' && approval.scopes.length === 0)
    throw invalid('"scopes" must name at least one scope: an agent of a platform asks for none.')
  await requireConfirmedScopes(core, actor, approval.scopes)
  // It ends an agent.
  if (approval.isReplacing) await requireConfirmed(core, actor)
  const { agentId } = enrollment
  return agentId === null ? approveAgent(core, approval) : approveGrant(core, approval, agentId)
}

/** All that is asked of an approval but its confirmation, and that it is still open. Throws as `approveEnrollment` does. */
export async function planApproval(
  core: Core,
  actor: Actor,
  enrollment: Enrollment,
  command: ApproveCommand,
): Promise<Approval> {
  requireWhole(core, actor)
  const scopes = [...new Set(command.scopes ?? enrollment.scopes)]
  requireScopes(scopes)
  const asked = enrollment.lifetimeMs ?? undefined
  const chosen = command.expires_in === undefined ? asked : requireLifetime(command.expires_in, 'expires_in')
  const policy = enrollment.agentId === null ? policyFor(core, enrollment.name) : undefined
  const lifetimeMs = withinPolicy(policy, chosen)
  requireHeld(core, actor, scopes, endAfter(core, lifetimeMs))
  const { agentId } = enrollment
  const isReplacing = command.replace === true
  if (agentId !== null && (isReplacing || command.audiences !== undefined))
    throw invalid('"replace" and "audiences" are for enrollments; here the agent is there already.')
  if (isReplacing) requireMayEnd(core, actor)
  const audiences = await requireAudiences(core, actor, [...new Set(command.audiences ?? policy?.audiences)])
  const receiver = agentId === null ? undefined : await core.store.agents.findLiving(agentId)
  // As for a change: one that has ended in the meantime is refused by the commit.
  if (receiver !== undefined) requireBounds(core, actor, receiver)
  return {
    actor,
    enrollment,
    policy,
    scopes,
    lifetimeMs,
    note: command.note ?? null,
    audiences,
    isReplacing,
  }
}

/** An administrator may shorten the lifetime that the policy sets, not extend it. Throws `invalid_request`. */
function withinPolicy(policy: CompiledPolicy | undefined, chosen: number | undefined): number | undefined {
  const longest = policy?.maxAgentLifetimeMs
  if (policy === undefined || longest === undefined) return chosen
  if (chosen !== undefined && chosen > longest)
    throw invalid(`The policy "${policy.name}" allows at most ${formatDuration(longest)} for "expires_in".`)
  return chosen ?? longest
}

function decisionOf(core: Core, { actor, scopes, lifetimeMs, note }: Approval) {
  return {
    status: 'approved',
    scopes,
    lifetimeMs: lifetimeMs ?? null,
    decidedAt: core.store.now(),
    decidedBy: actorId(actor),
    decisionNote: note,
  } as const
}

async function approveAgent(core: Core, approval: Approval): Promise<Enrollment> {
  const { actor, enrollment, policy, scopes, lifetimeMs, audiences, isReplacing } = approval
  const { id, name, publicJwk } = enrollment
  requireUnheld(core, name)
  const taken = new Problem('conflict', { message: REPLACE })
  const present = await core.store.agents.findByName(name)
  if (present !== undefined && !isReplacing) throw taken
  const createdBy = actorId(actor)
  const under = createdUnder(actor.caller, policy)
  const made = await prepareAgent(core, {
    name,
    scopes,
    audiences,
    lifetimeMs,
    publicJwk,
    createdBy,
    ...under,
  })
  const { agent } = made
  const base = decisionOf(core, approval)
  const decision = {
    ...base,
    agentId: agent.id,
    sealedAnswer: core.sealer.seal('enrollments', id, 'answer', answerOf(made)),
    collectUntil: base.decidedAt + COLLECT_MS,
  }
  const details = {
    enrollment_id: id,
    expires_at: agent.expiresAt,
    policy: policy?.name,
    ...(audiences.length === 0 ? {} : { audiences }),
    replaces: present?.id,
  }
  const replaced = present === undefined ? [] : await endSteps(core, actor, present, 'deleted')
  const at = core.store.now()
  const outcome = await commit(core, actor, [
    core.store.enrollments.decide(id, decision),
    ...whileUnchanged(actor),
    ...replaced,
    ...made.steps,
    approvedEntry(core, approval, { agent, at }, details),
    audit(core, actor, { action: 'agent.created', at, agent, scopes, details }),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw outcome.reason === 'unique' ? taken : await decisionRefused(core, id, outcome)
  return { ...enrollment, ...decision }
}

/**
 * The extra scopes are a grant of their own, so that they can end by themselves, and so that no mapping of claims takes them. An
 * agent of a platform has as long as after a login to use the first ones.
 */
async function approveGrant(core: Core, approval: Approval, agentId: string): Promise<Enrollment> {
  const { actor, enrollment, scopes, lifetimeMs } = approval
  const { id, name, type } = enrollment
  const { agents } = core.store
  const decision = decisionOf(core, approval)
  const grant: AgentGrant = {
    id: core.ids.body(),
    agentId,
    scopes,
    createdAt: decision.decidedAt,
    expiresAt: lifetimeMs === undefined ? null : decision.decidedAt + lifetimeMs,
  }
  const agent = { id: agentId, name }
  const details = { enrollment_id: id, expires_at: grant.expiresAt }
  const at = core.store.now()
  const outcome = await commit(core, actor, [
    core.store.enrollments.decide(id, decision),
    ...whileUnchanged(actor),
    ...(type === 'claim'
      ? agents.extend(agentId, decision.decidedAt + PLATFORM_AGENT_MS)
      : agents.touch(agentId)),
    agents.insertGrant(grant),
    approvedEntry(core, approval, { agent, at }, details),
    audit(core, actor, {
      action: 'agent.scopes_changed',
      at,
      agent,
      scopes,
      details: { ...details, change: 'added' },
    }),
  ])
  requireUnchanged(outcome)
  if (!outcome.done) throw await decisionRefused(core, id, outcome)
  return { ...enrollment, ...decision }
}

/** Without the note: agents read their own entries, and it is for administrators. */
function approvedEntry(
  core: Core,
  { actor, scopes }: Approval,
  { agent, at }: { readonly agent: { readonly id: string; readonly name: string }; readonly at: number },
  details: Record<string, unknown>,
): Step {
  return audit(core, actor, {
    action: 'enrollment.approved',
    at,
    agent,
    scopes,
    details,
  })
}
