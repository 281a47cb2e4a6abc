import type { AgentGrant } from '../../domain/agent.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import type { AgentWithUse } from '../../store/tables/agents.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants } from '../held-scopes.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'

export interface AgentView {
  readonly id: string
  readonly name: string
  /** All scopes it holds now, extra grants included. */
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly lastUsed: number | null
  readonly expiresAt: number | null
  readonly policy: string | null
  readonly audiences: readonly string[]
  readonly description: string | null
  /** Until when the secrets before the last rotation are accepted; null: they are not. */
  readonly previousUntil: number | null
}

type Parts = Pick<Core, 'store' | 'lastUse'>

/** Oldest first. */
export async function listAgents(
  core: Parts,
  { cursor, limit = DEFAULT_PAGE }: PageQuery,
): Promise<Page<AgentView>> {
  const { items: agents, next } = pageOf(
    await core.store.agents.list(cursor, limit + 1),
    limit,
    ({ id }) => id,
  )
  const grants = Map.groupBy(
    await core.store.agents.grantsOfAll(agents.map(({ id }) => id)),
    (grant) => grant.agentId,
  )
  return { items: agents.map((agent) => viewOf(core, agent, grants.get(agent.id) ?? [])), next }
}

/** Throws `agent_not_found`. */
export async function readAgent(core: Parts, name: string): Promise<AgentView> {
  const agent = await core.store.agents.findByName(name)
  if (agent === undefined) throw new Problem('agent_not_found')
  const lastUsedAt = await core.store.agents.lastUsed(agent.id)
  return viewOf(core, { ...agent, lastUsedAt }, await core.store.agents.grantsOf(agent.id))
}

export function viewOf(core: Parts, agent: AgentWithUse, grants: readonly AgentGrant[]): AgentView {
  const now = core.store.now()
  return {
    id: agent.id,
    name: agent.name,
    scopes: heldScopes(agent, livingGrants(grants, now)),
    createdAt: agent.createdAt,
    lastUsed: core.lastUse.get(agent.id) ?? agent.lastUsedAt,
    expiresAt: agent.expiresAt,
    policy: agent.policy,
    audiences: agent.audiences,
    description: agent.description,
    previousUntil: (agent.previous?.until ?? 0) > now ? (agent.previous?.until ?? null) : null,
  }
}

/** The public keys of living agents, for verifying their commits; by agent id. */
export async function listSigningKeys(
  core: Pick<Core, 'store'>,
  { cursor, limit = DEFAULT_PAGE }: PageQuery,
): Promise<Page<SigningKey>> {
  const keys = await core.store.agents.listSigningKeys(cursor, limit + 1)
  return pageOf(keys, limit, ({ agentId }) => agentId)
}
