import type { AgentGrant } from '../../domain/agent.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny, requireScopes } from '../../domain/scope.ts'
import { heldScopes } from '../held-scopes.ts'
import type { LivingAgent } from './find-living.ts'

export interface ScopeChanges {
  /** All scopes of the agent after the change; its grants for a limited time end. */
  readonly scopes?: readonly string[] | undefined
  readonly add_scopes?: readonly string[] | undefined
  /** As they are listed. */
  readonly remove_scopes?: readonly string[] | undefined
}

export interface ScopePlan {
  /** The agent's own. */
  readonly scopes: readonly string[]
  /** Its extra grants, with what is left of each; those without any are dropped. */
  readonly grants: readonly AgentGrant[]
  /** Those that it did not hold permanently. */
  readonly added: readonly string[]
  /** Those that it holds no longer under this name. */
  readonly removed: readonly string[]
}

/** Throws `invalid_request`. */
export function checkScopeChanges({ scopes, add_scopes: add, remove_scopes: remove }: ScopeChanges): void {
  if (scopes !== undefined && (add !== undefined || remove !== undefined))
    throw invalid('"scopes" replaces all scopes; omit "add_scopes" and "remove_scopes".')
  requireScopes(scopes ?? [], 'scopes')
  requireScopes(add ?? [], 'add_scopes')
  requireScopes(remove ?? [], 'remove_scopes')
  if (add?.some((scope) => remove?.includes(scope)) === true)
    throw invalid('A scope is in both "add_scopes" and "remove_scopes".')
}

/** Throws `invalid_request` for too many scopes, and for one to remove that the agent does not hold under this name. */
export function planScopes({ agent, grants }: LivingAgent, changes: ScopeChanges): ScopePlan {
  const before = heldScopes(agent, grants)
  const remove = changes.remove_scopes ?? []
  if (!remove.every((scope) => before.includes(scope)))
    throw invalid('"remove_scopes" contains a scope that the agent does not hold; name each as it is listed.')
  const isKept = (scope: string) => !remove.includes(scope)
  const own = changes.scopes ?? [...agent.scopes.filter(isKept), ...(changes.add_scopes ?? [])]
  const scopes = [...new Set(own)]
  requireScopes(scopes)
  const kept = changes.scopes === undefined ? grants : []
  const after = kept.map((grant) => ({ ...grant, scopes: grant.scopes.filter(isKept) }))
  const permanent = heldScopes(
    agent,
    grants.filter(({ expiresAt }) => expiresAt === null),
  )
  const now = heldScopes({ scopes }, after)
  return {
    scopes,
    grants: after.filter((grant) => grant.scopes.length > 0),
    added: scopes.filter((scope) => !coversAny(permanent, scope)),
    removed: before.filter((scope) => !now.includes(scope)),
  }
}

/**
 * For an agent of a platform, whose own scopes come from the mapping of claims: what it is given beside them is the extra grant
 * `fresh`. Throws as `planScopes`, and `conflict` for taking what the mapping gives.
 */
export function planBesideMapping(
  { agent, grants }: LivingAgent,
  changes: ScopeChanges,
  fresh: Pick<AgentGrant, 'id' | 'createdAt'>,
): ScopePlan {
  const plan = planScopes({ agent, grants }, changes)
  if (!agent.scopes.every((scope) => plan.scopes.includes(scope)))
    throw new Problem('conflict', {
      message: 'The mapping of its platform gives the agent a scope that you take: change "platforms".',
    })
  const given = plan.scopes.filter((scope) => !agent.scopes.includes(scope))
  const grant = { ...fresh, agentId: agent.id, scopes: given, expiresAt: null }
  return { ...plan, scopes: agent.scopes, grants: given.length === 0 ? plan.grants : [...plan.grants, grant] }
}

/** Sentences about removed scopes that a wider one still grants. */
export function stillHeld({ scopes, grants, removed }: ScopePlan): string[] {
  const held = heldScopes({ scopes }, grants)
  return removed.flatMap((scope) => {
    const wider = held.find((one) => coversAny([one], scope))
    return wider === undefined ? [] : [`The agent still holds "${scope}", because it holds "${wider}".`]
  })
}
