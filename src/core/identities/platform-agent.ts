import { createHash } from 'node:crypto'
import type { AgentGrant } from '../../domain/agent.ts'
import { claimMetadata } from '../../domain/identity/claim-metadata.ts'
import type { Platform, ProvenWorkload } from '../../domain/identity/identity.ts'
import { mappedScopes } from '../../domain/identity/platform-scopes.ts'
import { PLATFORM_AGENT_MS, UNCLAIMED_AGENT_MS } from '../../domain/limits.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'
import { claimSteps } from '../enrollments/claims.ts'
import { heldScopes } from '../held-scopes.ts'
import { type OwnedAgent, ownedAgent } from './owned-agent.ts'

/** RFC 4648 §6, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
/** 60 bits: of a million agents of a platform, two have one name once in two million platforms, and the second is refused. */
const NAME_DIGITS = 12

type Parts = Pick<Core, 'store' | 'ids' | 'settings' | 'callers'>

/**
 * The agent of a platform whose token was proven. Each (platform, `sub`) is one of its own, which nothing refuses for being new and
 * which has nothing for it: it waits in the inbox for what an administrator gives (extra grants), unless the mapping of claims gives
 * something. What the mapping gives is decided anew with each login. Throws `IdentityRefused` (`name_taken`).
 */
export async function agentOfPlatform(
  core: Parts,
  actor: Actor<undefined>,
  platform: Platform,
  proven: Pick<ProvenWorkload, 'issuer' | 'subject' | 'claims'>,
): Promise<OwnedAgent> {
  const { issuer, subject, claims } = proven
  const prefix = `${platform.name}-`
  const scopes = mappedScopes(platform, claims)
  const owned = {
    entry: { kind: 'platform', platform } as const,
    values: [issuer, subject],
    name: `${prefix}${digitsOf(subject)}`,
  }
  let hadNone = true
  const made = await ownedAgent(core, actor, owned, (living, grants) => {
    hadNone = living === undefined || heldScopes(living, grants).length === 0
    return { scopes, ttlMs: lifeOf(scopes, grants), bounds: {} }
  })
  const { agent, isNew, grants } = made
  if (heldScopes(agent, grants).length === 0) {
    const metadata = claimMetadata(platform.name, proven)
    const claim = await claimSteps(core, actor, { agent, isNew, prefix, metadata })
    return { ...made, steps: [...made.steps, ...claim] }
  }
  if (isNew || !hadNone) return made
  const decision = { scopes, decidedAt: core.store.now(), decidedBy: 'system' }
  return { ...made, steps: [...made.steps, core.store.enrollments.settleClaim(agent.id, decision)] }
}

function lifeOf(scopes: readonly string[], grants: readonly AgentGrant[]): number {
  return scopes.length + grants.length > 0 ? PLATFORM_AGENT_MS : UNCLAIMED_AGENT_MS
}

/** The beginning of the hash of a `sub`, which may hold any characters, and whose case counts. */
export function digitsOf(subject: string): string {
  const hash = createHash('sha256').update(subject, 'utf8').digest()
  let bits = 0n
  for (const byte of hash.subarray(0, 8)) bits = (bits << 8n) | BigInt(byte)
  let digits = ''
  for (let at = 0; at < NAME_DIGITS; at += 1)
    digits += BASE32.charAt(Number((bits >> BigInt(59 - 5 * at)) & 31n))
  return digits
}
