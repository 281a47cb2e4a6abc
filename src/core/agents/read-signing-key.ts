import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireWhole } from '../require-whole.ts'
import { takeKeyUse } from './key-rate.ts'
import { ownSigningKey } from './own-signing-key.ts'

export interface SigningKeyView {
  readonly keyId: string
  readonly publicKey: string
  readonly privateKey: string | undefined
  readonly email: string
  readonly name: string
}

/**
 * The caller's own key. The private half leaves only while the agent lives, and after its entry is durable; the public
 * half needs no entry, unless the key is made for it. Throws `unauthorized`, `insufficient_scope` for a narrowed token, `not_allowed`, `rate_limited`,
 * `conflict`, `audit_unavailable`.
 */
export async function readSigningKey(
  core: Core,
  actor: Actor<AgentCaller>,
  withPrivateKey: boolean,
): Promise<SigningKeyView> {
  const { caller } = actor
  const key = await ownSigningKey(core, actor)
  const view = { keyId: key.keyId, publicKey: key.publicKey, email: key.email, name: key.name }
  if (!withPrivateKey) return { ...view, privateKey: undefined }
  requireWhole(core, actor)
  if (!core.settings.signingKeyExport) throw refuseExport(core, actor)
  takeKeyUse(core, caller)
  const privateKey = core.sealer.open('signing_keys', caller.agentId, 'private_key', key.sealedPrivateKey)
  const entry = audit(core, actor, { action: 'signing_key.read', details: { key_id: key.keyId } })
  requireUnchanged(
    await commit(core, actor, [...whileUnchanged(actor), entry], { code: 'audit_unavailable' }),
  )
  return { ...view, privateKey }
}

function refuseExport(core: Pick<Core, 'denials'>, actor: Actor<AgentCaller>): Problem {
  const problem = new Problem('not_allowed', {
    message: 'Private keys do not leave this server: sign with POST /v1/sign, or set private_key=false.',
  })
  core.denials.record(actor, { action: 'signing_key.read', details: { code: problem.code } })
  return problem
}
