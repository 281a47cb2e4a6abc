import { Type } from 'typebox'
import { MAX_AUDIENCES } from '../domain/audience.ts'
import { MAX_TEXT_LENGTH } from '../domain/limits.ts'
import { Duration, Metadata, Name, nullable, Page, Scope, Scopes, Timestamp, Warnings } from './shared.ts'

/** Enrollment, requests for more scopes, and what an administrator does with both. */
export const EnrollmentStatus = Type.Enum(['pending', 'approved', 'rejected', 'expired'], { type: 'string' })
const Text = Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH })

export const EnrollmentId = Type.Object({ id: Type.String({ minLength: 1, maxLength: 256 }) })

const PublicKey = Type.Object(
  {
    kty: Type.String({ enum: ['OKP', 'EC'] }),
    crv: Type.String({ enum: ['Ed25519', 'P-256'] }),
    x: Type.String({ maxLength: 64 }),
    y: Type.Optional(Type.String({ maxLength: 64 })),
    kid: Type.Optional(Type.String({ maxLength: 128 })),
    alg: Type.Optional(Type.String({ maxLength: 16 })),
    use: Type.Optional(Type.String({ maxLength: 16 })),
  },
  { additionalProperties: false, description: 'Ed25519 or P-256 public JWK; the agent creates the key pair' },
)

export const Enroll = Type.Object(
  {
    name: Name,
    scopes: Type.Optional(Scopes),
    public_key: PublicKey,
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false },
)

export const Enrolled = Type.Object({
  id: Type.String(),
  enrollment_id: Type.String(),
  status: EnrollmentStatus,
  poll_url: Type.String(),
  poll_interval_ms: Type.Integer(),
  expires_at: Timestamp,
  warnings: Warnings,
})

export const ProofHeader = Type.Object({
  'enrollment-proof': Type.Optional(
    Type.String({
      description:
        'compact JWS by the enrolled key; claims aud (the issuer), enr (the id), iat (60 s), jti (used once), enc (X25519 or P-256 public JWK)',
    }),
  ),
})

export const EnrollmentPoll = Type.Object({
  id: Type.String(),
  status: EnrollmentStatus,
  poll_interval_ms: Type.Integer(),
  expires_at: Timestamp,
  sealed: Type.Optional(
    Type.String({
      description:
        'compact JWE (ECDH-ES, A256GCM) to enc: token, oidc, scopes, agent_id, signing_key_id, signing_email',
    }),
  ),
  collected_at: Type.Optional(Timestamp),
  reason: Type.Optional(Type.String({ description: 'when rejected' })),
})

export const RequestScopes = Type.Object(
  {
    scopes: Type.Array(Scopes.items, { minItems: 1, maxItems: 64 }),
    reason: Type.Optional(Text),
    expires_in: Type.Optional(Duration),
  },
  { additionalProperties: false },
)

export const RequestedScopes = Type.Object({
  id: Type.String(),
  status: EnrollmentStatus,
  scopes: Type.Array(Type.String()),
  reason: Type.Optional(Type.String()),
  expires_in: Type.Optional(Duration),
  created_at: Timestamp,
  expires_at: Timestamp,
  decided_at: Type.Optional(Timestamp),
  decision_note: Type.Optional(Type.String({ description: 'why it was rejected' })),
  warnings: Warnings,
})

export const PendingQuery = Type.Object(
  { status: Type.Optional(EnrollmentStatus), ...Page },
  { additionalProperties: false },
)

export const PendingEnrollment = Type.Object({
  id: Type.String(),
  name: Type.String(),
  type: Type.String({ enum: ['enroll', 'amendment'] }),
  scopes: Type.Array(Type.String()),
  public_key_fingerprint: nullable(Type.String({ description: 'RFC 7638 thumbprint' })),
  metadata: nullable(Metadata),
  ip_address: nullable(Type.String()),
  created_at: Timestamp,
  expires_at: Timestamp,
  status: EnrollmentStatus,
  name_taken: Type.Optional(
    Type.Boolean({ description: 'true: an agent has this name; approve with `replace`, or reject' }),
  ),
  note: Type.Optional(Type.String({ description: 'why it is pending, or the policy that approved it' })),
  reason: Type.Optional(Type.String({ description: 'reason for the request' })),
  expires_in: Type.Optional(Duration),
  agent_id: Type.Optional(Type.String()),
  decided_at: Type.Optional(Timestamp),
  decided_by: Type.Optional(Type.String()),
  decision_note: Type.Optional(Type.String()),
  collected_at: Type.Optional(Timestamp),
  warnings: Warnings,
})

export const Approve = Type.Object(
  {
    scopes: Type.Optional(Scopes),
    expires_in: Type.Optional(Duration),
    note: Type.Optional(Text),
    audiences: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        maxItems: MAX_AUDIENCES,
        description: 'of a new agent; default: those of its policy',
      }),
    ),
    replace: Type.Optional(
      Type.Boolean({
        description:
          'true: delete the agent that has this name, with its credentials; needs admin:agents:write',
      }),
    ),
  },
  { additionalProperties: false },
)

export const Reject = Type.Object({ reason: Type.Optional(Text) }, { additionalProperties: false })

export const Policy = Type.Object({
  name: Type.String(),
  pattern: Type.String(),
  scopes: Type.Array(Type.String()),
  auto_approve: Type.Boolean(),
  max_agent_lifetime: Type.Optional(Duration),
  max_ttl: Type.Optional(Duration),
  max_agents: Type.Optional(Type.Integer()),
  rate: Type.Optional(Type.String()),
  issue_rate: Type.Optional(Type.String()),
  max_active: Type.Optional(Type.Integer()),
  audiences: Type.Optional(Type.Array(Type.String())),
  suffix: Type.Optional(Type.Boolean({ description: 'true: each agent gets a name of its own' })),
  deny: Type.Array(Type.String()),
})

export const ExplainQuery = Type.Object(
  {
    name: Name,
    scope: Type.Optional(
      Type.Array(Scope, {
        maxItems: 64,
        description: 'repeatable; default: the scopes of the policy',
      }),
    ),
  },
  { additionalProperties: false },
)

export const Explanation = Type.Object({
  name: Type.String(),
  decision: Type.String({ enum: ['approve', 'wait'] }),
  reason: nullable(Type.String({ description: 'why an administrator must look at it' })),
  policy: nullable(Type.String({ description: 'the policy that decides' })),
  scopes: Type.Array(Type.String(), { description: 'the scopes it would hold, or those requested' }),
  expires_in: nullable(Duration),
  policies: Type.Array(
    Type.Object({
      name: Type.String(),
      pattern: Type.String(),
      matches: Type.Boolean(),
      decides: Type.Boolean({ description: 'the first policy that matches' }),
    }),
    { description: 'in order of evaluation' },
  ),
})
