import { type EndReason, type State, type Status, statusAt } from '../../domain/credential.ts'
import type { CredentialRow } from '../../store/schema/rows.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { readScopes } from '../held-scopes.ts'
import { findVisible, type UpstreamEnd, upstreamEnd } from './revoke-credential.ts'

/** What may be told of a credential; never its secret. Times in epoch ms. */
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

/** Throws `credential_not_found`, also for another's without `scope`. */
export async function readCredential(
  core: Pick<Core, 'store'>,
  caller: Caller,
  id: string,
  scope?: string,
): Promise<CredentialView> {
  return viewOf(await findVisible(core, caller, id, scope), core.store.now())
}

export function viewOf(row: CredentialRow, now: number): CredentialView {
  const status = statusAt(row.state as State, row.expires_at, row.end_reason as EndReason | null, now)
  return {
    id: row.id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    backend: row.backend,
    scopes: readScopes(row.scopes),
    status,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    upstreamExpiresAt: row.upstream_expires_at,
    revokedAt: status === 'revoked' ? row.ended_at : null,
    upstream: status === 'active' ? null : upstreamEnd(row),
  }
}
