import { MAX_REMAINING, MAX_REVOKED_AT_ONCE } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { traceOf } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import { requireConfirmed } from '../confirm.ts'
import type { Core } from '../context.ts'
import { findAgentId, findBackendName } from '../find-named.ts'

export interface RevokeAllCommand {
  /** Name or id. */
  readonly agent?: string | undefined
  readonly backend?: string | undefined
}

export interface RevokedAll {
  readonly revoked: number
  /** Those that are left, counted up to `MAX_REMAINING`. */
  readonly remaining: number
}

/** How often a slice is read again because one of its credentials ended meanwhile. */
const TRIES = 20

/**
 * Ends the living credentials of an agent, of a backend, or of an agent at a backend, each with its entry, also those
 * whose issue is under way. The sweeper revokes upstream. Throws `invalid_request`, `agent_not_found`,
 * `backend_not_found`, `conflict` and `confirmation_required`.
 */
export async function revokeAll(
  core: Pick<Core, 'store' | 'settings' | 'rates'>,
  actor: Actor,
  command: RevokeAllCommand,
): Promise<RevokedAll> {
  const whose = await ownerOf(core, command)
  await requireConfirmed(core, actor)
  const { credentials, endSlice } = core.store
  let revoked = 0
  let tries = 0
  while (revoked < MAX_REVOKED_AT_ONCE) {
    const now = core.store.now()
    const limit = Math.min(endSlice, MAX_REVOKED_AT_ONCE - revoked)
    const ids = await credentials.livingIdsOf(whose, now, limit)
    if (ids.length > 0) {
      const ending = { reason: 'revoked', endedAt: now, now, by: traceOf(actor) } as const
      const { done } = await commit(core, actor, credentials.endLate(ids, ending), {
        urgent: true,
        bulk: true,
      })
      if (done) revoked += ids.length
      else if (++tries === TRIES) throw new Problem('conflict')
      if (!done) continue
    }
    if (ids.length < limit) break
  }
  return { revoked, remaining: await credentials.countLivingOf(whose, core.store.now(), MAX_REMAINING) }
}

async function ownerOf(core: Pick<Core, 'store'>, { agent, backend }: RevokeAllCommand) {
  if (agent === undefined && backend === undefined) throw invalid('Name an "agent", a "backend", or both.')
  const agentId = agent === undefined ? undefined : await findAgentId(core, agent)
  if (agent !== undefined && agentId === undefined) throw new Problem('agent_not_found')
  const isKnown = backend === undefined || (await core.store.backends.isNameUsed(backend))
  if (!isKnown) throw new Problem('backend_not_found')
  return { agentId, backend: await findBackendName(core, backend) }
}
