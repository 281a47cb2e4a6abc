import type { Agent } from '../../domain/agent.ts'
import { identityOf } from '../../domain/identity/agent-identity.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import type { AgentSettings } from '../../store/tables/agents.ts'
import { actorId, audit, traceOf } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { requireConfirmed, requireConfirmedScopes } from '../confirm.ts'
import type { Core } from '../context.ts'
import { scopeWarnings } from '../granting-backend.ts'
import { heldScopes } from '../held-scopes.ts'
import { requireWhole } from '../require-whole.ts'
import { requireBounds } from './agent-bounds.ts'
import { checkExpiry, decideExpiry, type ExpiryChanges } from './change-expiry.ts'
import { requireAllHeld, requireAudiences, requireHeld } from './create-agent.ts'
import { busyAgent, findLivingAgent, type LivingAgent, TRIES } from './find-living.ts'
import { type AgentView, viewOne } from './list-agents.ts'
import { type Beyond, findBeyond, type OutOfScope, REVOKED_AT_ONCE, revokeInSlices } from './out-of-scope.ts'
import {
  checkScopeChanges,
  planBesideMapping,
  planScopes,
  type ScopeChanges,
  type ScopePlan,
  stillHeld,
} from './plan-scopes.ts'

/** Undefined fields stay as they are. */
export interface AgentChanges extends ScopeChanges, ExpiryChanges {
  readonly audiences?: readonly string[] | undefined
  /** Null or empty: none. */
  readonly description?: string | null | undefined
  /** Null or empty: who created it. */
  readonly owner?: string | null | undefined
  /** Revokes the living credentials that the agent's scopes no longer cover. */
  readonly revoke?: boolean | undefined
}

export interface ChangedAgent {
  readonly view: AgentView
  readonly warnings: readonly string[]
  /** Living credentials that the agent's scopes no longer cover: revoked now, if that was requested. */
  readonly outOfScope: readonly OutOfScope[]
}

interface Plan extends ScopePlan {
  readonly agent: Agent
  readonly before: LivingAgent
  readonly settings: AgentSettings
}

/**
 * Changes an agent, for all nodes at once. Removing scopes and shortening the expiry take from the agent; every other
 * change gives, and callers give no more than they hold (ADR 0027). Throws `agent_not_found`, `invalid_request`,
 * `conflict`, `insufficient_scope`, and `confirmation_required`.
 */
export async function changeAgent(
  core: Core,
  actor: Actor,
  name: string,
  changes: AgentChanges,
): Promise<ChangedAgent> {
  requireWhole(core, actor)
  checkForm(changes)
  const isRevoking = changes.revoke === true
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const plan = await decide(core, actor, await findLivingAgent(core, name), changes)
    const named = changes.scopes ?? changes.add_scopes ?? []
    const warnings = [...(await scopeWarnings(core, named)), ...stillHeld(plan)]
    const revoked = isRevoking ? await findBeyond(core, plan) : undefined
    if (revoked !== undefined && revoked.credentials.length > REVOKED_AT_ONCE)
      await revokeInSlices(core, actor, revoked)
    else if (await store(core, actor, plan, revoked)) return present(core, plan, warnings, revoked)
  }
  throw busyAgent()
}

async function present(
  core: Core,
  plan: Plan,
  warnings: readonly string[],
  revoked: Beyond | undefined,
): Promise<ChangedAgent> {
  const { agent, settings, grants, removed } = plan
  // All that was issued under the old scopes is stored by now.
  const left = revoked !== undefined || removed.length === 0 ? [] : (await findBeyond(core, plan)).credentials
  return {
    view: await viewOne(core, { ...agent, ...settings }, grants),
    warnings,
    outOfScope: [
      ...(revoked?.credentials ?? []).map((one) => ({ ...one, isRevoked: true })),
      ...left.map((one) => ({ ...one, isRevoked: false })),
    ],
  }
}

function checkForm(changes: AgentChanges): void {
  if (Object.values(changes).every((value) => value === undefined || value === false))
    throw invalid('The request changes nothing.')
  checkScopeChanges(changes)
  checkExpiry(changes)
}

/**
 * What the agent is to become. Throws `invalid_request`, `insufficient_scope` for what the caller does not hold, and
 * `confirmation_required` where it gives an admin scope, also one for longer, or ends all that the agent has.
 */
async function decide(core: Core, actor: Actor, before: LivingAgent, changes: AgentChanges): Promise<Plan> {
  const { agent } = before
  const isOfPlatform = identityOf(agent)?.kind === 'platform'
  const fresh = { id: core.ids.body(), createdAt: core.store.now() }
  const scopes = isOfPlatform ? planBesideMapping(before, changes, fresh) : planScopes(before, changes)
  requireOwnScopes(agent, scopes)
  const expiresAt = decideExpiry(core, agent, changes)
  const until = expiresAt ?? Number.POSITIVE_INFINITY
  const isExtended = until > (agent.expiresAt ?? Number.POSITIVE_INFINITY)
  if (scopes.added.length > 0) requireHeld(core, actor, scopes.added, until)
  if (scopes.added.length > 0 || isExtended) requireBounds(core, actor, agent)
  if (isExtended) requireAllHeld(core, actor, scopes, until)
  const audiences = await decideAudiences(core, actor, agent, changes.audiences)
  if (isExtended) await requireAudiences(core, actor, audiences)
  await requireConfirmedScopes(core, actor, isExtended ? heldScopes(scopes, scopes.grants) : scopes.added)
  const endsAll = changes.revoke === true && heldScopes(scopes, scopes.grants).length === 0
  if (endsAll) await requireConfirmed(core, actor)
  const description = changes.description === undefined ? agent.description : changes.description || null
  const owner = changes.owner === undefined ? agent.owner : changes.owner || null
  const settings = { scopes: scopes.scopes, audiences, expiresAt, description, owner }
  return { ...scopes, agent, before, settings }
}

/** An entry of `identities` decides about the scopes of its agents, with each login. Throws `conflict`. */
function requireOwnScopes(agent: Agent, planned: ScopePlan): void {
  const entry = identityOf(agent)
  if (entry?.kind !== 'identity' || JSON.stringify(planned.scopes) === JSON.stringify(agent.scopes)) return
  throw new Problem('conflict', {
    message: `The entry "${entry.name}" of "identities" gives this agent its scopes; change it there.`,
  })
}

/** The caller must hold the new ones. */
async function decideAudiences(
  core: Core,
  actor: Actor,
  { audiences: known }: Agent,
  wanted: readonly string[] | undefined,
): Promise<readonly string[]> {
  if (wanted === undefined) return known
  const all = [...new Set(wanted)]
  const allowed = await requireAudiences(
    core,
    actor,
    all.filter((one) => !known.includes(one)),
  )
  return all.filter((one) => known.includes(one) || allowed.includes(one))
}

/** False when the agent has changed since, or issued a credential that would have to be revoked, too. */
async function store(core: Core, actor: Actor, plan: Plan, revoked: Beyond | undefined): Promise<boolean> {
  const { agent, settings } = plan
  const { agents, credentials } = core.store
  const now = core.store.now()
  const ids = revoked?.credentials.map(({ id }) => id) ?? []
  const change: Step[] = [
    ...whileUnchanged(actor),
    ...agents.change(agent, settings),
    ...(revoked === undefined ? [] : [agents.requireNoOther(agent.id, revoked.living, now)]),
    ...grantSteps(core, actor, plan),
    ...(ids.length === 0 ? [] : credentials.endSome(ids, 'revoked', now, traceOf(actor))),
    entryOf(core, actor, plan, ids.length),
  ]
  const outcome = await commit(core, actor, change)
  requireUnchanged(outcome)
  return outcome.done
}

function grantSteps({ store }: Core, actor: Actor, { agent, before, grants, settings }: Plan): Step[] {
  const { agents, enrollments } = store
  const steps = before.grants.flatMap((old) => {
    const left = grants.find(({ id }) => id === old.id)
    if (left === undefined) return [agents.dropGrant(old.id)]
    return left.scopes.length === old.scopes.length ? [] : [agents.setGrantScopes(old.id, left.scopes)]
  })
  const fresh = grants.filter(({ id }) => !before.grants.some((old) => old.id === id))
  if (fresh.length === 0) return steps
  // Whoever gives scopes to an agent of a platform decides its claim.
  const scopes = heldScopes(settings, grants)
  const decision = { scopes, decidedAt: store.now(), decidedBy: actorId(actor) }
  return [...steps, ...fresh.map(agents.insertGrant), enrollments.settleClaim(agent.id, decision)]
}

/** One entry: what was added and removed, and each setting that changed. */
function entryOf(core: Core, actor: Actor, { agent, settings, added, removed }: Plan, revoked: number): Step {
  const isScoped = added.length + removed.length > 0
  const fields = (['expiresAt', 'audiences', 'description', 'owner'] as const).filter(
    (field) => JSON.stringify(agent[field]) !== JSON.stringify(settings[field]),
  )
  return audit(core, actor, {
    action: isScoped ? 'agent.scopes_changed' : 'agent.changed',
    agent,
    ...(isScoped ? { scopes: settings.scopes } : {}),
    details: {
      ...(isScoped ? { change: 'set', added, removed } : {}),
      ...(fields.includes('expiresAt') ? { expires_at: settings.expiresAt } : {}),
      ...(fields.includes('audiences') ? { audiences: settings.audiences } : {}),
      ...(fields.includes('description') ? { description: settings.description } : {}),
      ...(fields.includes('owner') ? { owner: settings.owner } : {}),
      ...(revoked === 0 ? {} : { revoked }),
    },
  })
}
