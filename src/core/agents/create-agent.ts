import { nameKey, requireName } from '../../domain/agent.ts'
import { isAudience } from '../../domain/audience.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny, heldUntil, requireScopes } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import type { AgentRow } from '../../store/schema/rows.ts'
import { actorOf, audit } from '../audit/entry.ts'
import { requireWhole } from '../authentication/authenticate.ts'
import type { Caller, Origin } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { readAudiences } from '../held-scopes.ts'

export interface AgentCommand {
  readonly name: string
  readonly scopes?: readonly string[] | undefined
  /** A duration as it was written. */
  readonly expires_in?: string | undefined
  readonly audiences?: readonly string[] | undefined
}

/** What is told once. */
export interface CreatedAgent {
  readonly agent: AgentRow
  readonly token: string
  readonly clientSecret: string
}

type Parts = Pick<Core, 'store' | 'ids' | 'keys' | 'hasher' | 'sealer' | 'settings' | 'denials'>

/** Throws `conflict` for a taken or reserved name, `invalid_request`, and `insufficient_scope` for what the caller does not hold, or not for so long. */
export async function createAgent(
  core: Parts,
  caller: Caller,
  command: AgentCommand,
  origin: Origin,
): Promise<CreatedAgent> {
  requireName(command.name)
  const scopes = command.scopes ?? []
  requireScopes(scopes)
  const lifetimeMs =
    command.expires_in === undefined ? undefined : requireLifetime(command.expires_in, 'expires_in')
  requireHeld(core, caller, { scopes, lifetimeMs }, origin)
  const audiences = [...new Set(command.audiences)]
  await requireAudiences(core, caller, audiences, origin)
  const made = await prepareAgent(core, {
    name: command.name,
    scopes,
    lifetimeMs,
    audiences,
    createdBy: actorOf(caller),
  })
  const entry = audit(core, caller, origin, {
    action: 'agent.created',
    agent: made.agent,
    scopes,
    details: { expires_at: made.agent.expires_at, ...(audiences.length === 0 ? {} : { audiences }) },
  })
  const outcome = await commit(core, [...whileUnchanged(caller), ...made.steps, entry])
  requireUnchanged(outcome)
  if (!outcome.done) throw new Problem('conflict', { message: 'An agent of this name exists already.' })
  return made
}

/**
 * Nobody grants what they do not hold (decisions §5.2), nor for longer than they hold it, which is never beyond their own
 * end (ADR 0018); the local host excepted.
 */
export function requireHeld(
  core: Pick<Core, 'denials' | 'store'>,
  caller: Caller,
  { scopes, lifetimeMs }: { readonly scopes: readonly string[]; readonly lifetimeMs: number | undefined },
  origin: Origin,
): void {
  if (caller.kind === 'local') return
  const refuse = (reason: string, message: string, scope?: string): Problem => {
    const lacking = scope === undefined ? {} : { scope }
    core.denials.record(caller, origin, { action: 'auth.failed', details: { reason, ...lacking } })
    return new Problem('insufficient_scope', { message, ...lacking })
  }
  const until = lifetimeMs === undefined ? Number.POSITIVE_INFINITY : core.store.now() + lifetimeMs
  for (const scope of scopes) {
    if (!coversAny(caller.scopes, scope))
      throw refuse('grant_not_held', 'You can only grant scopes that you hold yourself.', scope)
    const end = heldUntil(caller.timed, [scope])
    if (end < until) {
      const time = new Date(end).toISOString()
      const message = `You hold a scope of these until ${time}: grant it for no longer, by "expires_in".`
      throw refuse('grant_outlives', message, scope)
    }
  }
  if (caller.agentExpiresAt !== null && caller.agentExpiresAt < until) {
    const time = new Date(caller.agentExpiresAt).toISOString()
    throw refuse('grant_outlives', `You end at ${time} yourself: give no longer than that, by "expires_in".`)
  }
}

/** As with scopes: nobody lets another ask tokens for what they may not ask them for themselves. */
async function requireAudiences(
  core: Parts,
  caller: Caller,
  audiences: readonly string[],
  origin: Origin,
): Promise<void> {
  if (!audiences.every(isAudience)) throw invalid('An audience is a name without spaces, or a URI.')
  const beyond = audiences.filter((one) => !core.settings.audiences.includes(one))
  if (caller.kind === 'local' || beyond.length === 0) return
  requireWhole(core, caller, origin)
  const own = readAudiences(await core.store.agents.findLiving(caller.agentId))
  if (beyond.every((one) => own.includes(one))) return
  core.denials.record(caller, origin, { action: 'auth.failed', details: { reason: 'audience_not_held' } })
  throw new Problem('insufficient_scope', {
    message: 'You can only allow audiences that you may ask tokens for yourself.',
  })
}

export interface AgentPlan {
  readonly name: string
  readonly scopes: readonly string[]
  readonly audiences?: readonly string[] | undefined
  readonly lifetimeMs?: number | undefined
  readonly policy?: string | undefined
  /** Enrolled public key, for `private_key_jwt`. */
  readonly publicJwk?: Record<string, unknown> | undefined
  readonly createdBy: string
}

/** A new agent with its secrets and signing key, as steps that the caller commits with its own audit entry. */
export async function prepareAgent(core: Parts, plan: AgentPlan): Promise<CreatedAgent & { steps: Step[] }> {
  const now = core.store.now()
  const token = core.keys.mintBearer()
  const clientSecret = core.keys.mintClientSecret()
  const id = core.ids.id('agent')
  const email = `${plan.name}@${core.settings.signingDomain}`
  const pgp = await core.keys.generateAgentPgpKey({ name: plan.name, email, now })
  const agent: AgentRow = {
    id,
    name: plan.name,
    name_key: nameKey(plan.name),
    scopes: JSON.stringify([...new Set(plan.scopes)]),
    version: 1,
    bearer_hash: core.hasher.hash(token),
    client_id: core.ids.id('client'),
    client_secret_hash: core.hasher.hash(clientSecret),
    public_jwk: plan.publicJwk === undefined ? null : JSON.stringify(plan.publicJwk),
    signing_key_id: pgp.keyId,
    signing_email: email,
    policy: plan.policy ?? null,
    created_by: plan.createdBy,
    created_at: now,
    expires_at: plan.lifetimeMs === undefined ? null : now + plan.lifetimeMs,
    ended_at: null,
    end_reason: null,
    audiences: plan.audiences?.length ? JSON.stringify(plan.audiences) : null,
  }
  const signingKey = {
    key_id: pgp.keyId,
    agent_id: id,
    name: plan.name,
    email,
    public_key: pgp.publicKey,
    private_key: core.sealer.seal('signing_keys', id, 'private_key', pgp.privateKey),
    created_at: now,
    ended_at: null,
  }
  return {
    agent,
    token,
    clientSecret,
    steps: [
      { op: 'insert', table: 'agents', row: agent },
      { op: 'insert', table: 'signing_keys', row: signingKey },
    ],
  }
}
