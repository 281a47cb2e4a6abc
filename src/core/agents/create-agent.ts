import { type Agent, type AgentBounds, requireName } from '../../domain/agent.ts'
import { isAudience } from '../../domain/audience.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { holdsAllAdmin } from '../../domain/people/operator.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny, heldUntil, requireScopes } from '../../domain/scope.ts'
import { mintBearer, mintClientSecret } from '../../keys/bearer.ts'
import { generateAgentPgpKey } from '../../keys/pgp.ts'
import type { Step } from '../../store/engine/change.ts'
import { actorId, audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { requireConfirmedScopes } from '../confirm.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { requireUnheld } from '../reserved-name.ts'
import { createdUnder } from './agent-bounds.ts'
import type { ScopePlan } from './plan-scopes.ts'

export interface AgentCommand {
  readonly name: string
  readonly scopes?: readonly string[] | undefined
  /** A duration as it was written. */
  readonly expires_in?: string | undefined
  readonly audiences?: readonly string[] | undefined
  readonly description?: string | undefined
  /** Empty: the caller. */
  readonly owner?: string | undefined
}

/** The secrets are shown once and never again. */
export interface CreatedAgent {
  readonly agent: Agent
  readonly token: string
  readonly clientSecret: string
}

/**
 * Throws `conflict` for a taken or reserved name, `invalid_request`, and `insufficient_scope` for a narrowed token and for
 * scopes that the caller does not hold, or not for that long; `confirmation_required` where it gives an admin scope.
 */
export async function createAgent(core: Core, actor: Actor, command: AgentCommand): Promise<CreatedAgent> {
  requireWhole(core, actor)
  requireName(command.name)
  requireUnheld(core, command.name)
  const scopes = command.scopes ?? []
  requireScopes(scopes)
  const lifetimeMs =
    command.expires_in === undefined ? undefined : requireLifetime(command.expires_in, 'expires_in')
  requireHeld(core, actor, scopes, endAfter(core, lifetimeMs))
  const audiences = await requireAudiences(core, actor, [...new Set(command.audiences)])
  await requireConfirmedScopes(core, actor, scopes)
  const made = await prepareAgent(core, {
    name: command.name,
    scopes,
    description: command.description,
    owner: command.owner,
    lifetimeMs,
    audiences,
    ...createdUnder(actor.caller, undefined),
    createdBy: actorId(actor),
  })
  const entry = audit(core, actor, {
    action: 'agent.created',
    agent: made.agent,
    scopes,
    details: {
      expires_at: made.agent.expiresAt,
      ...(audiences.length === 0 ? {} : { audiences }),
      owner: made.agent.owner ?? undefined,
    },
  })
  const outcome = await commit(core, actor, [...whileUnchanged(actor), ...made.steps, entry])
  requireUnchanged(outcome)
  if (!outcome.done) throw new Problem('conflict', { message: 'An agent with this name already exists.' })
  return made
}

/** Epoch ms, or infinity. */
export function endAfter({ store }: Pick<Core, 'store'>, lifetimeMs: number | undefined): number {
  return lifetimeMs === undefined ? Number.POSITIVE_INFINITY : store.now() + lifetimeMs
}

/**
 * A caller grants only scopes it holds (decisions.md §5.2), and for no longer than it holds them, which is never beyond
 * its own end (ADR 0018). The local host is exempt. `until` is epoch ms, or infinity.
 */
export function requireHeld(
  core: Pick<Core, 'denials' | 'store'>,
  actor: Actor,
  scopes: readonly string[],
  until: number,
): void {
  const { caller } = actor
  if (caller.kind === 'local') return
  const refuse = (reason: string, message: string, scope?: string): Problem => {
    core.denials.record(actor, { action: 'auth.failed', details: { reason, scope } })
    return new Problem('insufficient_scope', { message, scope })
  }
  for (const scope of scopes) {
    if (!coversAny(caller.scopes, scope))
      throw refuse('grant_not_held', 'You can grant only scopes that you hold.', scope)
  }
  if (caller.kind === 'operator') return
  for (const scope of scopes) {
    const end = heldUntil(caller.timed, [scope])
    if (end < until) {
      const time = new Date(end).toISOString()
      const message = `You hold one of these scopes until ${time}; set "expires_in" to end no later.`
      throw refuse('grant_outlives', message, scope)
    }
  }
  if (caller.agentExpiresAt !== null && caller.agentExpiresAt < until) {
    const time = new Date(caller.agentExpiresAt).toISOString()
    throw refuse('grant_outlives', `Your agent expires at ${time}; set "expires_in" to end no later.`)
  }
}

/** The same for everything an agent may do: its own scopes, and its grants for a limited time. */
export function requireAllHeld(
  core: Pick<Core, 'denials' | 'store'>,
  actor: Actor,
  { scopes, grants }: Pick<ScopePlan, 'scopes' | 'grants'>,
  until: number,
): void {
  requireHeld(core, actor, scopes, until)
  for (const grant of grants)
    requireHeld(core, actor, grant.scopes, Math.min(until, grant.expiresAt ?? Number.POSITIVE_INFINITY))
}

/**
 * As with scopes: a caller can allow only audiences that it may request tokens for. Returns those to store, without the
 * server's own: an agent loses one of these when it is removed from the server's list.
 */
export async function requireAudiences(
  core: Pick<Core, 'store' | 'settings' | 'denials'>,
  actor: Actor,
  audiences: readonly string[],
): Promise<readonly string[]> {
  const { caller } = actor
  if (!audiences.every(isAudience)) throw invalid('An audience must be a name without spaces, or a URI.')
  const beyond = beyondServer(core, audiences)
  if (caller.kind === 'local' || beyond.length === 0) return beyond
  // Operators request no tokens: those with all of the administration decide as the local host does.
  if (caller.kind === 'operator' && holdsAllAdmin(caller.scopes)) return beyond
  const own =
    caller.kind === 'agent' ? ((await core.store.agents.findLiving(caller.agentId))?.audiences ?? []) : []
  if (beyond.every((one) => own.includes(one))) return beyond
  core.denials.record(actor, { action: 'auth.failed', details: { reason: 'audience_not_held' } })
  throw new Problem('insufficient_scope', {
    message: 'You can allow only audiences that you may request tokens for.',
  })
}

/** Audiences that the server does not allow by itself. */
export function beyondServer(
  { settings }: Pick<Core, 'settings'>,
  audiences: readonly string[] = [],
): readonly string[] {
  return [...new Set(audiences)].filter((one) => !settings.audiences.includes(one))
}

export interface AgentPlan {
  readonly name: string
  readonly description?: string | undefined
  readonly owner?: string | undefined
  readonly scopes: readonly string[]
  readonly audiences?: readonly string[] | undefined
  readonly lifetimeMs?: number | undefined
  readonly policy?: string | undefined
  readonly bounds?: AgentBounds | undefined
  /** Enrolled public key, for `private_key_jwt`. */
  readonly publicJwk?: Agent['publicJwk'] | undefined
  readonly createdBy: string
}

export interface PreparedAgent extends CreatedAgent {
  readonly steps: readonly Step[]
}

/** A new agent with its secrets and signing key, as steps for the caller to commit with an audit entry. */
export async function prepareAgent(core: Core, plan: AgentPlan): Promise<PreparedAgent> {
  const now = core.store.now()
  const token = mintBearer()
  const clientSecret = mintClientSecret()
  const id = core.ids.id('agent')
  const email = `${plan.name}@${core.settings.signingDomain}`
  const pgp = await generateAgentPgpKey({ name: plan.name, email, now })
  const agent: Agent = {
    id,
    name: plan.name,
    description: plan.description || null,
    scopes: [...new Set(plan.scopes)],
    audiences: plan.audiences ?? [],
    version: 1,
    bearerHash: core.hasher.hash(token),
    clientId: core.ids.id('client'),
    clientSecretHash: core.hasher.hash(clientSecret),
    rotation: 0,
    previous: null,
    publicJwk: plan.publicJwk ?? null,
    signingKeyId: pgp.keyId,
    signingEmail: email,
    policy: plan.policy ?? null,
    bounds: plan.bounds ?? null,
    createdBy: plan.createdBy,
    owner: plan.owner || null,
    identity: null,
    identityValues: null,
    createdAt: now,
    expiresAt: plan.lifetimeMs === undefined ? null : now + plan.lifetimeMs,
    endedAt: null,
    endReason: null,
  }
  const steps = core.store.agents.insert(agent, {
    keyId: pgp.keyId,
    agentId: id,
    name: plan.name,
    email,
    publicKey: pgp.publicKey,
    sealedPrivateKey: core.sealer.seal('signing_keys', id, 'private_key', pgp.privateKey),
    createdAt: now,
    endedAt: null,
  })
  return { agent, token, clientSecret, steps }
}
