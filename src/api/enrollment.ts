import { Type } from 'typebox'
import { MAX_AUDIENCES } from '../domain/audience.ts'
import { MAX_TEXT_LENGTH } from '../domain/limits.ts'
import * as Field from './shared.ts'

/** Enrollment, requests for more scopes, and what an administrator does with both. */
export const EnrollmentStatus = Type.Enum(['pending', 'approved', 'rejected', 'expired'], {
  type: 'string',
  description: 'Whether it was decided, and how.',
})
const note = (description: string, example: string) =>
  Field.text(description, example, { minLength: 1, maxLength: MAX_TEXT_LENGTH })

const enrollmentId = Field.text('Id of the enrollment or request.', Field.EXAMPLE_ID.enrollment)
export const EnrollmentId = Type.Object({
  id: Field.text('Id of the enrollment or request.', Field.EXAMPLE_ID.enrollment, {
    minLength: 1,
    maxLength: 256,
  }),
})

/** 32 bytes as base64url: the last character has two bits that are zero. */
const COORDINATE = '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$'
const ED25519 = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }
const P256 = {
  kty: 'EC',
  crv: 'P-256',
  x: 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY',
  y: 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU',
}
const kid = Type.Optional(Field.text('A name for the key.', 'key-1', { maxLength: 128 }))
const use = Type.Optional(Type.Literal('sig', { description: 'What the key is for.' }))
const algorithm = (names: string[]) => Type.Optional(Field.oneOf(names, 'The algorithm of the key.'))
const exact = (description: string, example: string) =>
  Field.text(description, example, { pattern: COORDINATE })

/** What each curve needs, for the document. Core checks that the point is on the curve. */
const Ed25519Key = Type.Object(
  {
    kty: Type.Literal('OKP', { description: 'Type of the key.' }),
    crv: Type.Literal('Ed25519', { description: 'The curve.' }),
    x: exact('The public key: 32 bytes as base64url.', ED25519.x),
    kid,
    alg: algorithm(['EdDSA', 'Ed25519']),
    use,
  },
  { additionalProperties: false, title: 'Ed25519Key', examples: [ED25519] },
)
const P256Key = Type.Object(
  {
    kty: Type.Literal('EC', { description: 'Type of the key.' }),
    crv: Type.Literal('P-256', { description: 'The curve.' }),
    x: exact('The x coordinate: 32 bytes as base64url.', P256.x),
    y: exact('The y coordinate: 32 bytes as base64url.', P256.y),
    kid,
    alg: algorithm(['ES256']),
    use,
  },
  { additionalProperties: false, title: 'P256Key', examples: [P256] },
)

const short = (maxLength: number) => Type.Optional(Type.String({ maxLength }))
const PublicKey = Type.Object(
  {
    kty: Type.String({ enum: ['OKP', 'EC'] }),
    crv: Type.String({ enum: ['Ed25519', 'P-256'] }),
    x: Type.String({ maxLength: 64 }),
    y: short(64),
    kid: short(128),
    alg: short(16),
    use: short(16),
  },
  {
    additionalProperties: false,
    ...Field.documentedAs({
      title: 'PublicKey',
      description: 'Ed25519 or P-256 public JWK; the agent creates the key pair.',
      oneOf: [Ed25519Key, P256Key],
      examples: [ED25519, P256],
    }),
  },
)

export const Enroll = Field.sent('EnrollRequest', {
  name: Field.newName('The name that the agent will have; not one in use.', 'ci-build'),
  scopes: Type.Optional(
    Field.scopes('The scopes that it asks for. Left out: those of the policy for its name.'),
  ),
  public_key: PublicKey,
  metadata: Type.Optional(Field.Metadata),
})

const status = EnrollmentStatus
const pollInterval = Field.count('How long to wait between polls, in ms.', 2000)
const expiresAt = Field.timestamp('Until when it can be decided or, once approved, collected.')
export const Enrolled = Field.shown('Enrolled', {
  id: enrollmentId,
  enrollment_id: Field.text('The same as `id`.', Field.EXAMPLE_ID.enrollment),
  status,
  poll_url: Field.text(
    'Where to ask for the outcome.',
    `https://mayfly.example.com/v1/enroll/${Field.EXAMPLE_ID.enrollment}/status`,
  ),
  poll_interval_ms: pollInterval,
  expires_at: expiresAt,
  warnings: Field.ScopeWarnings,
})

export const ProofHeader = Type.Object({
  'enrollment-proof': Type.Optional(
    Field.text(
      'Compact JWS by the enrolled key; claims aud (the issuer), enr (the id), iat (60 s), jti (used once), enc (X25519 or P-256 public JWK).',
      'eyJhbGciOiJFZERTQSJ9.eyJlbnIiOiJlbnJf4oCmIn0.c2ln',
      {},
      Field.accepts({ required: true, pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$' }),
    ),
  ),
})

export const EnrollmentPoll = Field.shown('EnrollmentPoll', {
  id: enrollmentId,
  status,
  poll_interval_ms: pollInterval,
  expires_at: expiresAt,
  sealed: Type.Optional(
    Field.text(
      'Compact JWE (ECDH-ES, A256GCM) to enc: token, oidc, scopes, agent_id, agent_name, signing_key_id, signing_email.',
      'eyJhbGciOiJFQ0RILUVTIn0..aXY.Y2lwaGVy.dGFn',
    ),
  ),
  collected_at: Type.Optional(Field.timestamp('When the answer was first collected.')),
  reason: Type.Optional(Field.text('Why it was rejected.', 'unknown machine')),
})

const REASON = 'nightly report'
export const RequestScopes = Field.sent('ScopeRequest', {
  scopes: Type.Array(Field.Scope, {
    minItems: 1,
    maxItems: 64,
    description: 'The scopes that the agent wants beside its own.',
  }),
  reason: Type.Optional(note('Why, for the administrator.', REASON)),
  expires_in: Type.Optional(Field.lifetime('How long the agent needs them; default: for good.', '2h')),
})

export const RequestedScopes = Field.shown('RequestedScopes', {
  id: enrollmentId,
  status,
  scopes: Field.shownScopes('The requested scopes.'),
  reason: Type.Optional(Field.text('The reason that was given.', REASON)),
  expires_in: Type.Optional(Field.lasts('How long they are for.', '2h')),
  created_at: Field.timestamp('When they were requested.'),
  expires_at: Field.timestamp('Until when an administrator can decide.'),
  decided_at: Type.Optional(Field.timestamp('When it was decided.')),
  decision_note: Type.Optional(Field.text('Why it was rejected.', 'ask for less')),
  warnings: Field.ScopeWarnings,
})

export const PendingQuery = Field.closed({ status: Type.Optional(EnrollmentStatus), ...Field.Page })

export const PendingEnrollment = Field.shown('PendingEnrollment', {
  id: enrollmentId,
  name: Field.text('Name of the agent.', 'ci-build'),
  type: Field.oneOf(
    ['enroll', 'amendment', 'claim'],
    '`enroll`: somebody wants to become an agent. `amendment`: an agent wants more scopes. `claim`: an agent of a platform came in without rights; `metadata` has `platform`, `issuer`, `subject` and the `claims` of its token.',
  ),
  scopes: Field.shownScopes('The requested scopes, none of a claim; once approved, those that were granted.'),
  public_key_fingerprint: Field.nullable(
    Field.text('RFC 7638 thumbprint of the enrolled key.', 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
  ),
  metadata: Field.nullable(Field.Metadata),
  ip_address: Field.nullable(Field.text('Where it came from.', '192.0.2.7')),
  created_at: Field.timestamp('When it came.'),
  expires_at: Field.timestamp('Until when it can be decided.'),
  status: EnrollmentStatus,
  name_taken: Type.Optional(
    Field.flag('true: an agent has this name; approve with `replace`, or reject. Only while it is pending.'),
  ),
  difference: Type.Optional(
    Type.Object(
      {
        added: Field.shownScopes('Those that the agent would gain.'),
        present: Field.shownScopes('Those that it has already.'),
        impossible: Field.shownScopes('Those that name no backend, or that can never be given.'),
      },
      { description: 'What an approval of all requested scopes would change. Only while it is pending.' },
    ),
  ),
  may_approve: Type.Optional(
    Field.flag('Whether the caller may approve it as it was requested. Only while it is pending.'),
  ),
  missing_scopes: Type.Optional(
    Field.shownScopes('The scopes that the caller lacks for that; absent: none.'),
  ),
  note: Type.Optional(Field.text('Why it is pending, or the policy that approved it.', 'no policy matches')),
  reason: Type.Optional(Field.text('Why the agent asks.', REASON)),
  expires_in: Type.Optional(Field.lasts('How long it is for.', '2h')),
  agent_id: Type.Optional(Field.agentId('The agent, once there is one.')),
  decided_at: Type.Optional(Field.timestamp('When it was decided.')),
  decided_by: Type.Optional(
    Field.text(
      'Who decided: id of an agent, `operator:` and an e-mail address, `local` or `system`.',
      'local',
    ),
  ),
  decision_note: Type.Optional(Field.text('What was said with the decision.', 'seen in the office')),
  collected_at: Type.Optional(Field.timestamp('When the agent collected its credentials.')),
  warnings: Field.ScopeWarnings,
})

export const Approve = Field.sent('Approval', {
  scopes: Type.Optional(Field.scopes('What to grant; default: what was requested. Required for a claim.')),
  expires_in: Type.Optional(
    Field.lifetime('How long the agent, or the extra scopes, last; default: as requested.', '24h'),
  ),
  note: Type.Optional(note('For the record.', 'seen in the office')),
  audiences: Type.Optional(
    Type.Array(Field.Audience, {
      maxItems: MAX_AUDIENCES,
      description: 'Of a new agent; default: those of its policy.',
    }),
  ),
  replace: Type.Optional(
    Field.flag('true: delete the agent that has this name, with its credentials; needs admin:agents:write'),
  ),
})

export const Reject = Field.sent('Rejection', {
  reason: Type.Optional(note('The agent that asked is shown it.', 'unknown machine')),
})
