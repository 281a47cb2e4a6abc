import type { Credential, EndReason, Revocation, State } from '../../domain/credential.ts'
import type { CredentialRow } from '../schema/rows.ts'

export function toCredential(row: CredentialRow): Credential {
  return {
    id: row.id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    backendUid: row.backend_uid,
    backend: row.backend,
    scopes: JSON.parse(row.scopes) as string[],
    state: row.state as State,
    revocation: row.revocation as Revocation,
    ttlMs: row.ttl_ms,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    upstreamExpiresAt: row.upstream_expires_at,
    endedAt: row.ended_at,
    endReason: row.end_reason as EndReason | null,
    settledAt: row.settled_at,
    dueAt: row.due_at,
    attempts: row.attempts,
    stuckAt: row.stuck_at,
    secretHash: row.secret_hash,
    sealedHandle: row.handle,
  }
}

export function toCredentialRow(credential: Credential): CredentialRow {
  return {
    id: credential.id,
    agent_id: credential.agentId,
    agent_name: credential.agentName,
    backend_uid: credential.backendUid,
    backend: credential.backend,
    scopes: JSON.stringify(credential.scopes),
    state: credential.state,
    revocation: credential.revocation,
    ttl_ms: credential.ttlMs,
    created_at: credential.createdAt,
    expires_at: credential.expiresAt,
    upstream_expires_at: credential.upstreamExpiresAt,
    ended_at: credential.endedAt,
    end_reason: credential.endReason,
    settled_at: credential.settledAt,
    due_at: credential.dueAt,
    attempts: credential.attempts,
    stuck_at: credential.stuckAt,
    secret_hash: credential.secretHash,
    handle: credential.sealedHandle,
  }
}
