import { requireName } from '../../domain/agent.ts'
import {
  type Identity,
  IdentityRefused,
  keyOfEntry,
  type ProvenWorkload,
} from '../../domain/identity/identity.ts'
import { expandAgentName } from '../../domain/identity/template.ts'
import { MAX_NAME_LENGTH } from '../../domain/limits.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { type OwnedAgent, ownedAgent } from './owned-agent.ts'

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
  if (entry.kind === 'platform') throw new IdentityRefused('unknown_issuer', [entry.platform.name])
  const { identity } = entry
  const { name, values } = nameOf(identity, proven)
  const owned = { key: keyOfEntry(entry), values: [proven.issuer, ...values] }
  const { scopes, agentTtlMs: ttlMs, maxTtlMs } = identity
  const bounds = maxTtlMs === undefined ? {} : { maxTtlMs }
  const given = identity.concurrent === 'suffix' ? `${name}-${core.ids.body().slice(-SUFFIX_LENGTH)}` : name
  return ownedAgent(core, actor, { ...owned, name: given }, () => ({ scopes, ttlMs, bounds }))
}

/**
 * The name that the entry gives, without a suffix, and the values of its claims in their order. Throws `IdentityRefused` (`value`).
 */
export function nameOf(
  identity: Identity,
  { claims }: Pick<ProvenWorkload, 'claims'>,
): { readonly name: string; readonly values: readonly string[] } {
  const expanded = expandAgentName(identity.agent, claims)
  const room = identity.concurrent === 'suffix' ? SUFFIX_LENGTH + 1 : 0
  try {
    requireName(expanded.name)
  } catch {
    throw new IdentityRefused('value', [identity.name], 'the name is not one that an agent may have')
  }
  if (expanded.name.length + room > MAX_NAME_LENGTH)
    throw new IdentityRefused('value', [identity.name], 'the name is too long')
  return expanded
}
