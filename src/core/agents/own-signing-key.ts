import type { Agent } from '../../domain/agent.ts'
import { Problem } from '../../domain/problems.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import { generateAgentPgpKey } from '../../keys/pgp.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { TRIES } from './find-living.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'sealer' | 'serialize'>
/** As it is while its agent lives. */
export type LivingKey = SigningKey & { readonly sealedPrivateKey: string }

/**
 * The caller's own key. An agent without secrets gets its key here, when it first asks for it: most of them never do. Throws
 * `unauthorized` when the agent has ended, `conflict`, and `invalid_request` for a name that gives no address.
 */
export async function ownSigningKey(core: Parts, actor: Actor<AgentCaller>): Promise<LivingKey> {
  const { agentId } = actor.caller
  const known = await core.store.agents.signingKeyOf(agentId)
  if (known !== undefined) return requireLiving(known)
  // Of two at once on two nodes the store refuses the second.
  return core.serialize(`signing-key|${agentId}`, async () => {
    for (let tries = 1; tries <= TRIES; tries += 1) {
      const agent = await core.store.agents.findLiving(agentId)
      const present = await core.store.agents.signingKeyOf(agentId)
      if (present !== undefined) return requireLiving(present)
      if (agent === undefined) throw agentEnded()
      const made = await addKey(core, actor, agent)
      if (made !== undefined) return made
    }
    throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
  })
}

function requireLiving(key: SigningKey): LivingKey {
  if (key.sealedPrivateKey === null) throw agentEnded()
  return { ...key, sealedPrivateKey: key.sealedPrivateKey }
}

/** Undefined when the agent has changed: its token may have been revoked. */
async function addKey(core: Parts, actor: Actor<AgentCaller>, agent: Agent): Promise<LivingKey | undefined> {
  const now = core.store.now()
  const { id, name, signingEmail: email } = agent
  const pgp = await generateAgentPgpKey({ name, email, now })
  const key = {
    keyId: pgp.keyId,
    agentId: id,
    name,
    email,
    publicKey: pgp.publicKey,
    sealedPrivateKey: core.sealer.seal('signing_keys', id, 'private_key', pgp.privateKey),
    createdAt: now,
    endedAt: null,
  }
  const entry = audit(core, actor, { action: 'agent.changed', details: { signing_key_id: key.keyId } })
  // Not with the guards of the caller, which would hold the row that this changes; the version of the agent stands for them.
  const nobody = { caller: undefined, origin: actor.origin }
  const outcome = await commit(core, nobody, [...core.store.agents.addSigningKey(agent, key), entry])
  return outcome.done ? key : undefined
}
