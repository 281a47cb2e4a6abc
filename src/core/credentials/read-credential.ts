import { type Credential, type Status, statusAt } from '../../domain/credential.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { findVisible, type UpstreamEnd, upstreamEnd } from './revoke-credential.ts'

/** The public part of a credential; never its secret. Times in epoch ms. */
export interface CredentialView {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly backend: string
  readonly scopes: readonly string[]
  readonly status: Status
  readonly createdAt: number
  readonly expiresAt: number
  readonly upstreamExpiresAt: number | null
  /** Set when it was revoked, not when it merely expired. */
  readonly revokedAt: number | null
  /** Whether it is gone at its upstream; set when it has ended. */
  readonly upstream: UpstreamEnd | null
}

/** Throws `credential_not_found`, also for another agent's without `scope`. */
export async function readCredential(
  core: Pick<Core, 'store'>,
  caller: Caller,
  id: string,
  scope?: string,
): Promise<CredentialView> {
  return viewOf(await findVisible(core, caller, id, scope), core.store.now())
}

export function viewOf(credential: Credential, now: number): CredentialView {
  const { state, expiresAt, endReason, endedAt } = credential
  const status = statusAt(state, expiresAt, endReason, now)
  return {
    id: credential.id,
    agentId: credential.agentId,
    agentName: credential.agentName,
    backend: credential.backend,
    scopes: credential.scopes,
    status,
    createdAt: credential.createdAt,
    expiresAt,
    upstreamExpiresAt: credential.upstreamExpiresAt,
    revokedAt: status === 'revoked' ? endedAt : null,
    upstream: status === 'active' ? null : upstreamEnd(credential),
  }
}
