import { readGitObject, type SigningPurpose } from '../../domain/git-object.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireIdentity } from '../../domain/signing-identity.ts'
import type { SigningKeyRow } from '../../store/schema/rows.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'sealer' | 'ids' | 'keys' | 'settings' | 'denials'>

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
  /** Epoch ms, whole seconds: when the signature says that it was made. */
  readonly createdAt: number
  readonly name: string
  readonly email: string
}

const MAX_ATTEMPTS = 3

/**
 * Signs a commit or tag with the caller's own key, which stays here. The entry is durable before the signature
 * leaves, and only while the agent lives.
 */
export async function signObject(
  core: Parts,
  caller: AgentCaller,
  command: SignCommand,
  origin: Origin,
): Promise<SignedObject> {
  const purpose = command.purpose ?? 'git-commit'
  const bytes = decode(command.data)
  const object = readGitObject(bytes, purpose)
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { key, privateKey, version } = await openKey(core, caller)
    refuseForeign(core, caller, origin, () => requireIdentity(object, key, core.settings.signingIdentity))
    const signed = await core.keys.signWithPgpKey({ privateKey, bytes, now: core.store.now() })
    const details = {
      key_id: key.key_id,
      purpose,
      sha256: signed.sha256,
      [purpose === 'git-tag' ? 'object' : 'tree']: object.target,
    }
    const outcome = await commit(
      core,
      [
        { op: 'guard', table: 'agents', id: caller.agentId, version },
        audit(core, caller, origin, { action: 'signing_key.used', details }),
      ],
      { code: 'audit_unavailable' },
    )
    if (outcome.done) {
      const { signature, fingerprint, createdAt } = signed
      return { signature, keyId: key.key_id, fingerprint, createdAt, name: key.name, email: key.email }
    }
  }
  throw new Problem('conflict', { message: 'The agent is being changed; try again.' })
}

/** Canonical only: what is recorded and what is signed must be the same bytes for every reader. */
function decode(data: string): Buffer {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length === 0 || bytes.toString('base64') !== data)
    throw invalid('"data" is not base64 (RFC 4648 §4, with padding) of at least one byte.')
  return bytes
}

async function openKey(
  core: Parts,
  caller: AgentCaller,
): Promise<{ key: SigningKeyRow; privateKey: string; version: number }> {
  const agent = await core.store.agents.findLiving(caller.agentId)
  const key = await core.store.agents.signingKeyOf(caller.agentId)
  if (agent === undefined || key === undefined || key.private_key === null) throw agentEnded()
  const privateKey = core.sealer.open('signing_keys', caller.agentId, 'private_key', key.private_key)
  return { key, privateKey, version: agent.version }
}

function refuseForeign(core: Parts, caller: AgentCaller, origin: Origin, check: () => void): void {
  try {
    check()
  } catch (error) {
    if (error instanceof Problem)
      core.denials.record(caller, origin, { action: 'signing_key.used', details: { code: error.code } })
    throw error
  }
}
