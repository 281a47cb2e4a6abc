import { DEFAULT_PAGE, MAX_PAGE } from '../../domain/limits.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'

export interface ActiveCredential {
  readonly id: string
  readonly backend: string
  readonly createdAt: number
  readonly expiresAt: number
}

export interface AgentStatus {
  readonly id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly lastUsed: number | null
  readonly expiresAt: number | null
  /** The first thousand; `/v1/active` pages through all. */
  readonly activeCredentials: readonly ActiveCredential[]
  readonly pendingRequests: readonly {
    id: string
    scopes: readonly string[]
    createdAt: number
    expiresAt: number
  }[]
}

type Parts = Pick<Core, 'store' | 'lastUse'>

/** The specification describes two forms of the status; this answer has both (decisions.md §4.8). */
export async function agentStatus(core: Parts, caller: AgentCaller): Promise<AgentStatus> {
  const [active, pending] = await Promise.all([
    listActive(core, caller, { limit: MAX_PAGE }),
    core.store.enrollments.pendingOf(caller.agentId),
  ])
  return {
    id: caller.agentId,
    name: caller.agentName,
    scopes: caller.scopes,
    createdAt: caller.createdAt,
    lastUsed:
      (core.lastUse.get(caller.agentId) ?? (await core.store.agents.lastUse(caller.agentId)))?.at ?? null,
    expiresAt: caller.agentExpiresAt,
    activeCredentials: active.items,
    pendingRequests: pending.map(({ id, scopes, createdAt, expiresAt }) => ({
      id,
      scopes,
      createdAt,
      expiresAt,
    })),
  }
}

/** The caller's own active credentials, oldest first. */
export async function listActive(
  core: Pick<Core, 'store'>,
  caller: AgentCaller,
  { cursor = '', limit = DEFAULT_PAGE }: PageQuery,
): Promise<Page<ActiveCredential>> {
  const { credentials, now } = core.store
  return pageOf(await credentials.livingOf(caller.agentId, now(), cursor, limit + 1), limit, ({ id }) => id)
}
