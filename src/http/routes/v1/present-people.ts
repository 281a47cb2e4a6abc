import type { SessionView } from '../../../core/sessions/end-session.ts'
import type { Operator } from '../../../domain/people/operator.ts'
import type { RelyingParty } from '../../../domain/people/relying-party.ts'
import type { Passkey } from '../../../domain/people/session.ts'
import { timestamp, timestampOrNull } from '../wire.ts'

export function presentPasskey(
  { id, name, backup, rpId, createdAt, lastUsedAt }: Passkey,
  party: RelyingParty,
) {
  return {
    id,
    name,
    backup,
    works_here: rpId === party.id,
    created_at: timestamp(createdAt),
    last_used: timestampOrNull(lastUsedAt),
  }
}

/** Null for one who was invited here. */
export function presentIdentity({ provider, issuer, subject }: Operator) {
  return provider === null || issuer === null || subject === null ? null : { provider, issuer, subject }
}

export function presentSession(session: SessionView) {
  return {
    id: session.id,
    operator_id: session.operatorId,
    email: session.email,
    method: session.method,
    created_at: timestamp(session.createdAt),
    last_used: timestamp(session.lastUsedAt),
    expires_at: timestamp(session.expiresAt),
    ip_address: session.ipAddress,
    user_agent: session.userAgent,
    host: session.host,
    allowed_by: session.allowedBy,
    current: session.isOwn,
  }
}
