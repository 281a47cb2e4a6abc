import { readGitObject, type SigningPurpose } from '../../domain/formats/git-object.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireIdentity } from '../../domain/signing-identity.ts'
import type { SigningKey } from '../../domain/signing-key.ts'
import { signWithPgpKey } from '../../keys/pgp.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { takeKeyUse } from './key-rate.ts'
import { ownSigningKey } from './own-signing-key.ts'

export interface SignCommand {
  /** Base64 of the object. */
  readonly data: string
  readonly purpose?: SigningPurpose
}

export interface SignedObject {
  /** ASCII armor. */
  readonly signature: string
  readonly keyId: string
  readonly fingerprint: string
  /** The time in the signature: epoch ms, whole seconds. */
  readonly createdAt: number
  readonly name: string
  readonly email: string
}

const MAX_ATTEMPTS = 3

/**
 * Signs a commit or tag with the caller's own key, which stays on the server. The signature leaves only while the agent
 * lives, and after its entry is durable. Throws `invalid_request`, `rate_limited`, `not_allowed` for somebody else's name, and
 * `conflict`.
 */
export async function signObject(
  core: Core,
  actor: Actor<AgentCaller>,
  command: SignCommand,
): Promise<SignedObject> {
  const { caller } = actor
  const purpose = command.purpose ?? 'git-commit'
  const bytes = decode(command.data)
  const object = readGitObject(bytes, purpose)
  takeKeyUse(core, caller)
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { key, privateKey, version } = await openKey(core, actor)
    refuseForeign(core, actor, () => requireIdentity(object, key, core.settings.signingIdentity))
    const signed = await signWithPgpKey({ privateKey, bytes, now: core.store.now() })
    const details = {
      key_id: key.keyId,
      purpose,
      sha256: signed.sha256,
      [purpose === 'git-tag' ? 'object' : 'tree']: object.target,
    }
    const outcome = await commit(
      core,
      actor,
      [
        { op: 'guard', table: 'agents', id: caller.agentId, version },
        audit(core, actor, { action: 'signing_key.used', details }),
      ],
      { code: 'audit_unavailable' },
    )
    if (outcome.done) {
      const { signature, fingerprint, createdAt } = signed
      return { signature, keyId: key.keyId, fingerprint, createdAt, name: key.name, email: key.email }
    }
  }
  throw new Problem('conflict', { message: 'The agent was changed at the same time; try again.' })
}

/** Canonical base64 only: every reader must see the same bytes in the entry and in the signature. */
function decode(data: string): Buffer {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length === 0 || bytes.toString('base64') !== data)
    throw invalid('"data" must be padded base64 (RFC 4648 §4) of at least one byte.')
  return bytes
}

async function openKey(
  core: Core,
  actor: Actor<AgentCaller>,
): Promise<{ key: SigningKey; privateKey: string; version: number }> {
  const { caller } = actor
  const key = await ownSigningKey(core, actor)
  const agent = await core.store.agents.findLiving(caller.agentId)
  if (agent === undefined) throw agentEnded()
  const privateKey = core.sealer.open('signing_keys', caller.agentId, 'private_key', key.sealedPrivateKey)
  return { key, privateKey, version: agent.version }
}

function refuseForeign(core: Core, actor: Actor<AgentCaller>, check: () => void): void {
  try {
    check()
  } catch (error) {
    if (error instanceof Problem)
      core.denials.record(actor, { action: 'signing_key.used', details: { code: error.code } })
    throw error
  }
}
