import { Type } from 'typebox'
import { Fields, LeftOut } from './api-v1.ts'
import { Duration, Metadata, Name, nullable, Scope, Scopes, Timestamp } from './shared.ts'

/** Group B, `/v1`, as an agent sees it. */
export const ActiveCredential = Type.Object({
  id: Type.String(),
  backend: Type.String(),
  expires_at: Timestamp,
  created_at: Timestamp,
})

export const AgentStatus = Type.Object({
  id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(Type.String()),
  created_at: Timestamp,
  last_used: nullable(Timestamp),
  expires_at: nullable(Timestamp),
  active_credentials: Type.Array(
    Type.Object({ id: Type.String(), backend: Type.String(), expires_at: Timestamp }),
  ),
  pending_requests: Type.Array(
    Type.Object({
      id: Type.String(),
      scopes: Type.Array(Type.String()),
      created_at: Timestamp,
      expires_at: Timestamp,
    }),
  ),
})

export const BackendName = Type.Object({ backend: Name })

export const IssueBody = Type.Object(
  {
    ttl: Type.Optional(Duration),
    scopes: Type.Optional(Scopes),
    metadata: Type.Optional(Metadata),
    params: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'options of this kind of backend' }),
    ),
  },
  { additionalProperties: false },
)

export const IssueQuery = Type.Object(
  {
    ttl: Type.Optional(Duration),
    scope: Type.Optional(Type.Array(Scope, { maxItems: 64, description: 'repeatable' })),
    repo: Type.Optional(
      Type.Array(Type.String({ maxLength: 256 }), { maxItems: 64, description: 'repeatable' }),
    ),
    read_only: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

export const BackendCredential = Type.Object({
  token: Type.Optional(Type.String({ description: 'shown once' })),
  expires_at: Timestamp,
  id: Type.String(),
  ttl: Type.String(),
  fields: Type.Optional(Fields),
  left_out: Type.Optional(LeftOut),
})

export const SigningKeyQuery = Type.Object(
  {
    format: Type.Optional(Type.String({ enum: ['git'] })),
    private_key: Type.Optional(
      Type.Boolean({ description: '`false` omits the private key and records nothing' }),
    ),
  },
  { additionalProperties: false },
)

export const SigningKey = Type.Object({
  key_id: Type.String(),
  public_key: Type.String(),
  private_key: Type.Optional(Type.String({ description: 'absent with ?private_key=false' })),
  email: Type.String(),
  name: Type.String(),
  git_config: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'with ?format=git: the git settings' }),
  ),
})

export const SignBody = Type.Object(
  {
    data: Type.String({ description: 'base64 of the git object as git would hash it, at most 48000 bytes' }),
    purpose: Type.Optional(Type.Enum(['git-commit', 'git-tag'], { description: 'default: `git-commit`' })),
  },
  { additionalProperties: false },
)

export const Signature = Type.Object({
  signature: Type.String({ description: 'detached OpenPGP signature, ASCII armor' }),
  key_id: Type.String(),
  fingerprint: Type.String(),
  created_at: Timestamp,
  email: Type.String(),
  name: Type.String(),
})
