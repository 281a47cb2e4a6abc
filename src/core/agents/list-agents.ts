import { nameKey } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { AgentGrantRow, SigningKeyRow } from '../../store/schema/rows.ts'
import type { AgentWithUse } from '../../store/tables/agents.ts'
import type { Core } from '../context.ts'
import { heldScopes, livingGrants, readAudiences } from '../held-scopes.ts'

export interface AgentView {
  readonly id: string
  readonly name: string
  /** All that it holds now, extra ones included. */
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly lastUsed: number | null
  readonly expiresAt: number | null
  readonly policy: string | null
  readonly audiences: readonly string[]
}

type Parts = Pick<Core, 'store' | 'lastUse'>

/** Oldest first, those after `cursor`. */
export async function listAgents(
  core: Parts,
  cursor: string | undefined,
  limit: number,
): Promise<AgentView[]> {
  const rows = await core.store.agents.list(cursor, limit)
  const grants = Map.groupBy(
    await core.store.agents.grantsOfAll(rows.map(({ id }) => id)),
    (grant) => grant.agent_id,
  )
  return rows.map((row) => viewOf(core, row, grants.get(row.id) ?? []))
}

/** Throws `agent_not_found`. */
export async function readAgent(core: Parts, name: string): Promise<AgentView> {
  const row = await core.store.agents.findByName(nameKey(name))
  if (row === undefined) throw new Problem('agent_not_found')
  const used = { ...row, last_used_at: await core.store.agents.lastUsed(row.id) }
  return viewOf(core, used, await core.store.agents.grantsOf(row.id))
}

function viewOf(core: Parts, row: AgentWithUse, grants: readonly AgentGrantRow[]): AgentView {
  return {
    id: row.id,
    name: row.name,
    scopes: heldScopes(row, livingGrants(grants, core.store.now())),
    createdAt: row.created_at,
    lastUsed: core.lastUse.get(row.id) ?? row.last_used_at,
    expiresAt: row.expires_at,
    policy: row.policy,
    audiences: readAudiences(row),
  }
}

/** Public keys of the living agents, for whoever verifies their commits; by agent id, after `cursor`. */
export function listSigningKeys(
  core: Pick<Core, 'store'>,
  cursor: string | undefined,
  limit: number,
): Promise<SigningKeyRow[]> {
  return core.store.agents.listSigningKeys(cursor, limit)
}
