import { Type } from 'typebox'
import { ACTION_NAMES, Duration, Metadata, Name, nullable, Scopes, Timestamp } from './shared.ts'

/** Group A, `/api/v1`. */
export const CredentialRequest = Type.Object(
  {
    backend: Name,
    ttl: Type.Optional(Duration),
    scopes: Type.Optional(Scopes),
    metadata: Type.Optional(Metadata),
    params: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'options of this kind of backend' }),
    ),
  },
  { additionalProperties: false },
)

export const Fields = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
  description: 'the parts of a credential that has several',
})

export const LeftOut = Type.Array(Type.String(), {
  description:
    'scopes of the agent that this backend can never give, if the request named no scopes; absent: none',
})

export const IssuedCredential = Type.Object({
  id: Type.String(),
  token: Type.Optional(Type.String({ description: 'shown once' })),
  backend: Type.String(),
  scopes: Type.Array(Type.String()),
  expires_at: Timestamp,
  created_at: Timestamp,
  ttl: Type.String(),
  upstream_expires_at: Type.Optional(Timestamp),
  fields: Type.Optional(Fields),
  left_out: Type.Optional(LeftOut),
})

export const CredentialStatus = Type.String({ enum: ['active', 'expired', 'revoked'] })

export const UpstreamEnd = Type.String({
  enum: ['revoked', 'pending', 'expires'],
  description:
    '`revoked`: gone upstream too; `pending`: not yet, it is being tried; `expires`: accepted there until its own expiry',
})

export const CredentialInfo = Type.Object({
  id: Type.String(),
  backend: Type.String(),
  scopes: Type.Array(Type.String()),
  expires_at: Timestamp,
  created_at: Timestamp,
  revoked: Type.Boolean(),
  status: CredentialStatus,
  agent: Type.String(),
  revoked_at: Type.Optional(Timestamp),
  upstream: Type.Optional(UpstreamEnd),
  upstream_expires_at: Type.Optional(Timestamp),
})

export const RevokedCredential = Type.Object({
  id: Type.String(),
  revoked: Type.Boolean(),
  revoked_at: Timestamp,
  upstream: UpstreamEnd,
})

export const CredentialId = Type.Object({ id: Type.String({ minLength: 1, maxLength: 128 }) })

export const BackendInfo = Type.Object({
  id: Type.String(),
  type: Type.String(),
  default_ttl: Type.String(),
  max_ttl: Type.String(),
  allowed_scopes: Type.Optional(Type.Array(Type.String())),
  description: Type.Optional(Type.String()),
  revocation: Type.String({ enum: ['exact', 'expiry_only'] }),
  broken: Type.Optional(
    Type.Boolean({ description: 'true: its stored configuration cannot be opened, so it issues nothing' }),
  ),
})

export const BackendList = Type.Object({ backends: Type.Array(BackendInfo) })

export const AuditQuery = {
  backend: Type.Optional(Name),
  since: Type.Optional(Type.String({ maxLength: 64, description: 'ISO 8601, or a duration back from now' })),
  until: Type.Optional(Type.String({ maxLength: 64 })),
  agent: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'id or name of an agent; a name refers to its current or most recent owner',
    }),
  ),
  actor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'the actor: an agent as above, `local` or `system`',
    }),
  ),
  action: Type.Optional(Type.String({ enum: ACTION_NAMES })),
  credential: Type.Optional(Type.String({ maxLength: 64 })),
}

export const AuditEntry = Type.Object({
  id: Type.String(),
  timestamp: Timestamp,
  action: Type.String({ enum: ACTION_NAMES }),
  outcome: Type.String({ enum: ['ok', 'denied', 'failed'] }),
  agent_id: nullable(Type.String()),
  agent_name: nullable(Type.String()),
  actor: Type.String({ description: 'id of the acting agent, `local` or `system`' }),
  backend: nullable(Type.String()),
  credential_id: nullable(Type.String()),
  scopes: nullable(Type.Array(Type.String())),
  ttl: nullable(Type.String()),
  ip_address: nullable(Type.String()),
  user_agent: nullable(Type.String()),
  auth_method: nullable(Type.String()),
  request_id: nullable(Type.String()),
  metadata: nullable(Type.Record(Type.String(), Type.Unknown())),
  details: nullable(Type.Record(Type.String(), Type.Unknown())),
})

export const AuditPage = Type.Object({
  entries: Type.Array(AuditEntry),
  next_cursor: nullable(Type.String()),
})
