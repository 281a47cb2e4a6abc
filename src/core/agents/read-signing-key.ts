import { Problem } from '../../domain/problems.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded, requireWhole } from '../authentication/authenticate.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'

export interface SigningKeyView {
  readonly keyId: string
  readonly publicKey: string
  readonly privateKey: string | undefined
  readonly email: string
  readonly name: string
}

/**
 * The caller's own key. The entry is durable before the private half leaves, and it leaves only while the agent lives;
 * the public one needs none. Throws `unauthorized`, `insufficient_scope` for a narrowed token, `not_allowed`, `conflict`, `audit_unavailable`.
 */
export async function readSigningKey(
  core: Pick<Core, 'store' | 'sealer' | 'ids' | 'settings' | 'denials'>,
  caller: AgentCaller,
  origin: Origin,
  withPrivateKey: boolean,
): Promise<SigningKeyView> {
  const row = await core.store.agents.signingKeyOf(caller.agentId)
  if (row === undefined || row.private_key === null) throw agentEnded()
  const view = { keyId: row.key_id, publicKey: row.public_key, email: row.email, name: row.name }
  if (!withPrivateKey) return { ...view, privateKey: undefined }
  requireWhole(core, caller, origin)
  if (!core.settings.signingKeyExport) throw refuseExport(core, caller, origin)
  const privateKey = core.sealer.open('signing_keys', caller.agentId, 'private_key', row.private_key)
  const entry = audit(core, caller, origin, { action: 'signing_key.read', details: { key_id: row.key_id } })
  requireUnchanged(await commit(core, [...whileUnchanged(caller), entry], { code: 'audit_unavailable' }))
  return { ...view, privateKey }
}

function refuseExport(core: Pick<Core, 'denials'>, caller: AgentCaller, origin: Origin): Problem {
  const problem = new Problem('not_allowed', {
    message: 'Private keys stay on this server: sign by POST /v1/sign, or ask with private_key=false.',
  })
  core.denials.record(caller, origin, { action: 'signing_key.read', details: { code: problem.code } })
  return problem
}
