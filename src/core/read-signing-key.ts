import { Problem } from '../domain/problems.ts'
import { audit } from './audit-entry.ts'
import { commit } from './commit.ts'
import type { AgentCaller, Core, Origin } from './context.ts'

export interface SigningKeyView {
  readonly keyId: string
  readonly publicKey: string
  readonly privateKey: string
  readonly email: string
  readonly name: string
}

/** The caller's own key pair. The entry is durable before the private key leaves. */
export async function readSigningKey(
  core: Pick<Core, 'store' | 'sealer' | 'ids'>,
  caller: AgentCaller,
  origin: Origin,
): Promise<SigningKeyView> {
  const row = await core.store.agents.signingKeyOf(caller.agentId)
  if (row === undefined || row.private_key === null)
    throw new Problem('unauthorized', { message: 'The agent has ended.', invalidToken: true })
  const privateKey = core.sealer.open('signing_keys', caller.agentId, 'private_key', row.private_key)
  await commit(
    core,
    [audit(core, caller, origin, { action: 'signing_key.read', details: { key_id: row.key_id } })],
    { code: 'audit_unavailable' },
  )
  return { keyId: row.key_id, publicKey: row.public_key, privateKey, email: row.email, name: row.name }
}
