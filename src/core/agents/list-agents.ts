import { setImmediate } from 'node:timers/promises'
import type { Agent, AgentGrant } from '../../domain/agent.ts'
import { type AgentIdentity, identityOf } from '../../domain/identity/agent-identity.ts'
import { DEFAULT_PAGE, MAX_COUNTED_OF_AGENT } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import type { AgentUse, AgentWithUse } from '../../store/tables/agents.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants } from '../held-scopes.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'

export interface AgentView {
  readonly id: string
  readonly name: string
  /** All scopes it holds now, extra grants included. */
  readonly scopes: readonly string[]
  readonly createdAt: number
  /** Who answers for it. */
  readonly owner: string
  /** Its credentials that have not ended, counted up to `MAX_COUNTED_OF_AGENT`. */
  readonly live: number
  readonly lastUse: AgentUse | null
  /** Null: it has not asked for one yet. */
  readonly signingKeyId: string | null
  /** What an agent without secrets is bound to. */
  readonly identity: AgentIdentity | null
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
  const live = await countLiving(
    core,
    agents.map(({ id }) => id),
  )
  return { items: agents.map((agent) => viewOf(core, agent, grants.get(agent.id) ?? [], live)), next }
}

/** Throws `agent_not_found`. */
export async function readAgent(core: Parts, name: string): Promise<AgentView> {
  const agent = await core.store.agents.findByName(name)
  if (agent === undefined) throw new Problem('agent_not_found')
  return viewOne(core, agent, await core.store.agents.grantsOf(agent.id))
}

/** With its last use and the number of its credentials, which are read here. */
export async function viewOne(core: Parts, agent: Agent, grants: readonly AgentGrant[]): Promise<AgentView> {
  const lastUse = await core.store.agents.lastUse(agent.id)
  return viewOf(core, { ...agent, lastUse }, grants, await countLiving(core, [agent.id]))
}

/** Agents whose credentials are counted at once. */
const COUNTED_AT_ONCE = 20

/** In slices that hold up nobody, because each agent may have as many as are counted. */
async function countLiving({ store }: Parts, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const all = new Map<string, number>()
  for (let start = 0; start < ids.length; start += COUNTED_AT_ONCE) {
    if (start > 0) await setImmediate()
    const some = ids.slice(start, start + COUNTED_AT_ONCE)
    for (const [id, live] of await store.credentials.countLivingOfEach(some, MAX_COUNTED_OF_AGENT))
      all.set(id, live)
  }
  return all
}

function viewOf(
  core: Parts,
  agent: AgentWithUse,
  grants: readonly AgentGrant[],
  live: ReadonlyMap<string, number>,
): AgentView {
  const now = core.store.now()
  return {
    id: agent.id,
    name: agent.name,
    scopes: heldScopes(agent, livingGrants(grants, now)),
    createdAt: agent.createdAt,
    owner: agent.owner ?? agent.createdBy,
    live: live.get(agent.id) ?? 0,
    lastUse: core.lastUse.get(agent.id) ?? agent.lastUse,
    signingKeyId: agent.signingKeyId || null,
    identity: identityOf(agent),
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
