import type { Agent, AgentBounds, AgentGrant } from '../../domain/agent.ts'
import { type AnyEntry, IdentityRefused, keyOfEntry, nameOfEntry } from '../../domain/identity/identity.ts'
import type { Step } from '../../store/engine/change.ts'
import { endSteps } from '../agents/end-agent.ts'
import { audit } from '../audit/entry.ts'
import { type Actor, SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { livingGrants } from '../held-scopes.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'settings' | 'callers'>

/** What an agent without secrets is bound to. */
export interface Ownership {
  readonly entry: AnyEntry
  /** The issuer first. Compared case by case. */
  readonly values: readonly string[]
  readonly name: string
}

/** What the entry gives to its agent. */
export interface OwnedRights {
  readonly scopes: readonly string[]
  /** From this login on. */
  readonly ttlMs: number
  readonly bounds: AgentBounds
}

export type RightsOf = (living: Agent | undefined, grants: readonly AgentGrant[]) => OwnedRights

/** An agent as it will be after `steps`, which go into the commit of the login. */
export interface OwnedAgent {
  readonly agent: Agent
  /** Its living extra grants. */
  readonly grants: readonly AgentGrant[]
  readonly steps: readonly Step[]
  readonly isNew: boolean
}

/** A login extends the life of its agent when less than this part of it is left, so that logins in a row change no row. */
const FRESH = 0.9

/**
 * The agent of this name for another login: made, or brought up to what its entry gives now. One that has expired makes room.
 * `rightsOf` gets the living agent, if there is one, and its living extra grants. The steps are refused when the agent has changed, or the name has been taken,
 * in the meantime: call this again. Await the generation of the store first. Throws `IdentityRefused` (`name_taken`) when somebody else has the name.
 */
export async function ownedAgent(
  core: Parts,
  actor: Actor<undefined>,
  owned: Ownership,
  rightsOf: RightsOf,
): Promise<OwnedAgent> {
  const kept = core.callers.knownNamed(owned.name)
  if (kept !== undefined && isBoundTo(kept.agent, owned)) return bringUp(core, actor, kept, rightsOf)
  const known = await core.store.agents.findByName(owned.name)
  if (known === undefined) return createOwned(core, actor, owned, rightsOf(undefined, []))
  if (known.expiresAt !== null && known.expiresAt <= core.store.now()) {
    // The job has not reached it yet.
    const ended = await endSteps(core, SYSTEM, known, 'expired')
    const made = createOwned(core, actor, owned, rightsOf(undefined, []))
    return { ...made, steps: [...ended, ...made.steps] }
  }
  if (!isBoundTo(known, owned)) throw new IdentityRefused('name_taken', [nameOfEntry(owned.entry)])
  const grants = livingGrants(await core.store.agents.grantsOf(known.id), core.store.now())
  return bringUp(core, actor, { agent: known, grants }, rightsOf)
}

function isBoundTo({ identity, identityValues: values }: Agent, owned: Ownership): boolean {
  return (
    identity === keyOfEntry(owned.entry) &&
    values?.length === owned.values.length &&
    values.every((value, index) => value === owned.values[index])
  )
}

/** No secret has the hash that stands for its own: each hash is 43 characters long. */
function createOwned(
  core: Parts,
  actor: Actor<undefined>,
  { entry: trusted, values, name }: Ownership,
  { scopes, ttlMs, bounds }: OwnedRights,
): OwnedAgent {
  const now = core.store.now()
  const key = keyOfEntry(trusted)
  const id = core.ids.id('agent')
  const agent: Agent = {
    id,
    name,
    description: null,
    scopes: [...new Set(scopes)],
    audiences: [],
    version: 1,
    bearerHash: id,
    clientId: core.ids.id('client'),
    clientSecretHash: '',
    rotation: 0,
    previous: null,
    publicJwk: null,
    signingKeyId: '',
    signingEmail: `${name}@${core.settings.signingDomain}`,
    policy: null,
    bounds,
    createdBy: key,
    owner: null,
    identity: key,
    identityValues: values,
    createdAt: now,
    expiresAt: now + ttlMs,
    endedAt: null,
    endReason: null,
  }
  const entry = audit(core, actor, {
    action: 'agent.created',
    agent,
    scopes: agent.scopes,
    details: { expires_at: agent.expiresAt, identity: key, values },
  })
  return { agent, grants: [], isNew: true, steps: [...core.store.agents.insert(agent), entry] }
}

/** An expiry that an administrator moved further away, or took off, stays. */
function bringUp(
  core: Parts,
  actor: Actor<undefined>,
  { agent: known, grants }: Pick<OwnedAgent, 'agent' | 'grants'>,
  rightsOf: RightsOf,
): OwnedAgent {
  const now = core.store.now()
  const { scopes, ttlMs, bounds } = rightsOf(known, grants)
  const wanted = [...new Set(scopes)]
  const isExtended = known.expiresAt !== null && known.expiresAt < now + FRESH * ttlMs
  const isRescoped = !isSameSet(known.scopes, wanted)
  if (!isExtended && !isRescoped && known.bounds?.maxTtlMs === bounds.maxTtlMs) {
    const guard = { op: 'guard', table: 'agents', id: known.id, version: known.version } as const
    return { agent: known, grants, isNew: false, steps: [guard] }
  }
  const rights = { scopes: wanted, bounds, expiresAt: isExtended ? now + ttlMs : known.expiresAt }
  const entry = audit(core, actor, {
    action: isRescoped ? 'agent.scopes_changed' : 'agent.changed',
    agent: known,
    ...(isRescoped ? { scopes: wanted } : {}),
    details: {
      identity: known.identity,
      ...(isRescoped ? { change: 'set', ...difference(known.scopes, wanted) } : {}),
      ...(isExtended ? { expires_at: rights.expiresAt } : {}),
      ...(known.bounds?.maxTtlMs === bounds.maxTtlMs ? {} : { max_ttl_ms: bounds.maxTtlMs ?? null }),
    },
  })
  return {
    agent: { ...known, ...rights, version: known.version + 1 },
    grants,
    isNew: false,
    steps: [...core.store.agents.follow(known, rights), entry],
  }
}

function difference(before: readonly string[], after: readonly string[]) {
  return {
    added: after.filter((scope) => !before.includes(scope)),
    removed: before.filter((scope) => !after.includes(scope)),
  }
}

const isSameSet = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((scope) => other.includes(scope))
