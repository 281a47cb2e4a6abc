import type { Agent } from '../../domain/agent.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { Problem } from '../../domain/problems.ts'
import { mintBearer, mintClientSecret } from '../../keys/bearer.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import { requireConfirmedScopes } from '../confirm.ts'
import type { Core } from '../context.ts'
import { heldScopes } from '../held-scopes.ts'
import { requireWhole } from '../require-whole.ts'
import { requireBounds } from './agent-bounds.ts'
import { type CreatedAgent, requireAllHeld, requireAudiences } from './create-agent.ts'
import { busyAgent, findLivingAgent, type LivingAgent, TRIES } from './find-living.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'hasher' | 'settings' | 'denials' | 'rates'>

/** The new secrets are shown once and never again. */
export interface RotatedAgent extends CreatedAgent {
  /** Epoch ms until which the old ones are accepted; null: they ended with the rotation. */
  readonly previousUntil: number | null
}

/**
 * Replaces the token and the client secret of an agent. The old ones, and the access tokens that came from them, end at once
 * on all nodes, or after `grace` (a duration). Its name, id, client id, scopes, credentials and keys stay. A caller that gets the new
 * secrets can do what the agent can, so this requires as much as creating the agent (ADR 0027). Throws `agent_not_found`,
 * `invalid_request`, `conflict`, `insufficient_scope`, and `confirmation_required`.
 */
export async function rotateAgent(
  core: Parts,
  actor: Actor,
  name: string,
  command: { readonly grace?: string | undefined },
): Promise<RotatedAgent> {
  requireWhole(core, actor)
  const graceMs = command.grace === undefined ? undefined : requireLifetime(command.grace, 'grace')
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const found = await findLivingAgent(core, name)
    if (found.agent.identity !== null)
      throw new Problem('conflict', {
        message: 'This agent has no secrets: it logs in by a token of its workload.',
      })
    await requireEqual(core, actor, found)
    const rotated = await replaceSecrets(core, actor, found.agent, graceMs)
    if (rotated !== undefined) return rotated
  }
  throw busyAgent()
}

/** Undefined when the agent changed in the meantime. */
async function replaceSecrets(
  core: Parts,
  actor: Actor,
  agent: Agent,
  graceMs: number | undefined,
): Promise<RotatedAgent | undefined> {
  const token = mintBearer()
  const clientSecret = mintClientSecret()
  const previousUntil = graceMs === undefined ? null : core.store.now() + graceMs
  const { bearerHash, clientSecretHash } = agent
  const secrets = {
    bearerHash: core.hasher.hash(token),
    clientSecretHash: core.hasher.hash(clientSecret),
    rotation: agent.rotation + 1,
    previous: previousUntil === null ? null : { bearerHash, clientSecretHash, until: previousUntil },
  }
  const change = [
    ...whileUnchanged(actor),
    ...core.store.agents.rotate(agent, secrets),
    audit(core, actor, {
      action: 'agent.rotated',
      agent,
      details: previousUntil === null ? {} : { previous_until: previousUntil },
    }),
  ]
  const outcome = await commit(core, actor, change, { urgent: true })
  requireUnchanged(outcome)
  if (!outcome.done) return undefined
  return { agent: { ...agent, ...secrets }, token, clientSecret, previousUntil }
}

/**
 * The caller must hold all that the agent can do, as if it created the agent. Throws `insufficient_scope`, and
 * `confirmation_required` for an agent with an admin scope.
 */
async function requireEqual(core: Parts, actor: Actor, { agent, grants }: LivingAgent): Promise<void> {
  if (actor.caller.kind === 'local') return
  const until = agent.expiresAt ?? Number.POSITIVE_INFINITY
  requireAllHeld(core, actor, { scopes: agent.scopes, grants }, until)
  await requireAudiences(core, actor, agent.audiences)
  requireBounds(core, actor, agent)
  await requireConfirmedScopes(core, actor, heldScopes(agent, grants))
}
