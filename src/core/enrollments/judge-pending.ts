import { setImmediate } from 'node:timers/promises'
import { Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { impossibleScopes } from '../granting-backend.ts'
import { heldScopes, livingGrants } from '../held-scopes.ts'
import { planApproval } from './approve-enrollment.ts'
import type { ListedEnrollment } from './list-pending.ts'

/** What an approval of all requested scopes would change, each of them in one list. */
export interface Difference {
  readonly added: readonly string[]
  /** The agent has them already. */
  readonly present: readonly string[]
  /** They name no backend, or can never be given. */
  readonly impossible: readonly string[]
}

export interface PendingJudgement {
  readonly difference: Difference
  /** Whether this caller may approve it as it was requested. */
  readonly mayApprove: boolean
  /** What the caller lacks for that. */
  readonly missingScopes: readonly string[]
}

const APPROVING = 'admin:enrollments:write'

/** For each that is pending: what it would change, and whether this caller may approve it. By id. */
export async function judgePending(
  core: Core,
  actor: Actor,
  pending: readonly ListedEnrollment[],
): Promise<ReadonlyMap<string, PendingJudgement>> {
  const held = await scopesOfAgents(core, pending)
  const all = new Map<string, PendingJudgement>()
  for (const one of pending) {
    // 64 scopes and a thousand backends take some milliseconds.
    if (all.size > 0) await setImmediate()
    const impossible = await impossibleScopes(core, one.scopes)
    const has = held.get(one.agentId ?? '') ?? []
    const possible = one.scopes.filter((scope) => !impossible.has(scope))
    const difference = {
      added: possible.filter((scope) => !coversAny(has, scope)),
      present: possible.filter((scope) => coversAny(has, scope)),
      impossible: one.scopes.filter((scope) => impossible.has(scope)),
    }
    const missingScopes = missing(actor, one.scopes)
    const mayApprove = missingScopes.length === 0 && (await isPermitted(core, actor, one))
    all.set(one.id, { difference, mayApprove, missingScopes })
  }
  return all
}

/** What the agents hold that ask for more. A new agent holds nothing. */
async function scopesOfAgents(
  { store }: Pick<Core, 'store'>,
  pending: readonly ListedEnrollment[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const ids = [...new Set(pending.flatMap(({ agentId }) => agentId ?? []))]
  const agents = await store.agents.findAllLiving(ids)
  const grants = Map.groupBy(await store.agents.grantsOfAll(ids), ({ agentId }) => agentId)
  const now = store.now()
  return new Map(
    agents.map((agent) => [agent.id, heldScopes(agent, livingGrants(grants.get(agent.id) ?? [], now))]),
  )
}

function missing({ caller }: Actor, scopes: readonly string[]): string[] {
  if (caller.kind === 'local') return []
  return [...new Set([APPROVING, ...scopes])].filter((scope) => !coversAny(caller.scopes, scope))
}

/** For a caller who lacks no scope: asks the rules of an approval themselves. Nothing was denied, so nothing is recorded. */
async function isPermitted(core: Core, actor: Actor, enrollment: ListedEnrollment): Promise<boolean> {
  const asking = { ...core, denials: { ...core.denials, record: () => {} } }
  try {
    await planApproval(asking, actor, enrollment, {})
    return true
  } catch (error) {
    if (error instanceof Problem) return false
    throw error
  }
}
