import { type Identity, IdentityRefused, type ProvenWorkload } from '../../domain/identity/identity.ts'
import { type ExpandedName, expandAgentName } from '../../domain/identity/template.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { type OwnedAgent, ownedAgent } from './owned-agent.ts'
import { agentOfPlatform } from './platform-agent.ts'

/** Random characters after the name, where each login is an agent of its own. */
const SUFFIX_LENGTH = 6

/**
 * The agent that a workload is, as `ownedAgent` gives it. Throws `IdentityRefused`: `value` for claims that cannot be part of a name,
 * `name_taken` where somebody else has the name.
 */
export async function agentOfWorkload(
  core: Core,
  actor: Actor<undefined>,
  proven: ProvenWorkload,
): Promise<OwnedAgent> {
  const { entry } = proven
  if (entry.kind === 'platform') return agentOfPlatform(core, actor, entry.platform, proven)
  const { identity } = entry
  const expanded = nameOf(identity, proven)
  const suffix = identity.concurrent === 'suffix' ? `-${core.ids.body().slice(-SUFFIX_LENGTH)}` : ''
  const owned = {
    entry,
    values: [proven.issuer, ...expanded.values],
    name: `${expanded.name}${suffix}`,
  }
  const { scopes, agentTtlMs: ttlMs, maxTtlMs } = identity
  const bounds = maxTtlMs === undefined ? {} : { maxTtlMs }
  return ownedAgent(core, actor, owned, () => ({ scopes, ttlMs, bounds }))
}

/** The name that the entry gives, without a suffix. Throws `IdentityRefused` (`value`). */
export function nameOf(identity: Identity, { claims }: Pick<ProvenWorkload, 'claims'>): ExpandedName {
  try {
    return expandAgentName(identity.agent, claims)
  } catch (error) {
    throw error instanceof IdentityRefused
      ? new IdentityRefused(error.reason, [identity.name], error.detail)
      : error
  }
}
