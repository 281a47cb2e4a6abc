import { Type } from 'typebox'
import {
  ACTION_NAMES,
  AgentRef,
  accepts,
  agentId,
  credentialId,
  DURATION_PATTERN,
  duration,
  EXAMPLE_ID,
  flag,
  free,
  lasts,
  Metadata,
  name,
  nullable,
  Page,
  Params,
  scopes,
  shownScopes,
  text,
  timestamp,
} from './shared.ts'

/** Group A, `/api/v1`. */
export const ASKED_SCOPES =
  'Relative to the backend (`read`) or absolute (`orders:read`). Left out: all that the agent holds on it.'
export const CredentialRequest = Type.Object(
  {
    backend: name('Name of the backend.', 'orders'),
    ttl: Type.Optional(duration('How long the credential lasts; default: `default_ttl` of the backend.')),
    scopes: Type.Optional(scopes(ASKED_SCOPES)),
    metadata: Type.Optional(Metadata),
    params: Type.Optional(Params),
  },
  { additionalProperties: false, title: 'CredentialRequest' },
)

export const Fields = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
  description: 'The parts of a credential that has several, such as `username` and `password`.',
  examples: [{ username: 'mf_06dznf1k', host: 'db.example.com', port: 5432 }],
})

export const Secret = text(
  'The credential itself, or the JSON text of its parts. Shown once.',
  'eyJhbGciOiJFUzI1NiJ9.e30.c2ln',
)
export const expiresAt = timestamp('When it expires: RFC 3339, UTC.')
export const createdAt = timestamp('When it was created: RFC 3339, UTC.')
const upstreamExpiresAt = timestamp(
  'When the upstream ends the credential, where that is later than `expires_at`.',
)

export const LeftOut = shownScopes(
  'Scopes of the agent that this backend can never give, if the request named none; absent: none.',
)

export const IssuedCredential = Type.Object(
  {
    id: credentialId('Id of the credential.'),
    token: Type.Optional(Secret),
    backend: text('Name of the backend.', 'orders'),
    scopes: shownScopes('The scopes that were granted.'),
    expires_at: expiresAt,
    created_at: createdAt,
    ttl: lasts('How long it was requested for.'),
    upstream_expires_at: Type.Optional(upstreamExpiresAt),
    fields: Type.Optional(Fields),
    left_out: Type.Optional(LeftOut),
  },
  { title: 'IssuedCredential' },
)

export const CredentialStatus = Type.String({
  enum: ['active', 'expired', 'revoked'],
  description: 'Whether it can be used, and if not, how it ended.',
})

export const UpstreamEnd = Type.String({
  enum: ['revoked', 'pending', 'expires'],
  description:
    '`revoked`: gone upstream too; `pending`: not yet, it is being tried; `expires`: accepted there until its own expiry',
})

export const CredentialInfo = Type.Object(
  {
    id: credentialId('Id of the credential.'),
    backend: text('Name of the backend.', 'orders'),
    scopes: shownScopes('The scopes that were granted.'),
    expires_at: expiresAt,
    created_at: createdAt,
    revoked: flag('Whether it was revoked.'),
    status: CredentialStatus,
    agent: text('Name of the agent that holds it.', 'ci-build'),
    revoked_at: Type.Optional(timestamp('When it was revoked.')),
    upstream: Type.Optional(UpstreamEnd),
    upstream_expires_at: Type.Optional(upstreamExpiresAt),
  },
  { title: 'CredentialInfo' },
)

export const RevokedCredential = Type.Object(
  {
    id: credentialId('Id of the credential.'),
    revoked: flag('Always true.'),
    revoked_at: timestamp('When it ended, also if that was before this request.'),
    upstream: UpstreamEnd,
  },
  { title: 'RevokedCredential' },
)

export const CredentialId = Type.Object({
  id: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'Id of the credential.',
    examples: [EXAMPLE_ID.credential],
    ...accepts({ pattern: '^cred_[0-9a-hjkmnp-tv-z]{26}$' }),
  }),
})

export const Environment = Type.Record(
  Type.String(),
  Type.Union([
    Type.String({ description: 'The value; `{field}` stands for a field, `{secret}` for the one value.' }),
    Type.Object({ file: Type.String({ description: 'The text of a file; the variable names its path.' }) }),
  ]),
  {
    description:
      'Variables that the programs of this upstream read, with what they get of a credential; absent: none.',
    examples: [{ PGUSER: '{username}', PGPASSWORD: '{password}' }],
  },
)

export const ScopeForms = Type.Array(
  Type.Object({
    form: text('A scope; `<name>` stands for a name.', 'orders:read'),
    gives: text('What a credential with it may do.', 'read orders'),
  }),
  { description: 'The forms of a scope, relative to the backend, with what they give.' },
)

/** What every agent may see of a backend. */
export const backendInfo = {
  id: text('Its name.', 'orders'),
  type: text('Its kind.', 'postgres'),
  default_ttl: lasts('How long a credential lasts if no `ttl` is requested.', '20m'),
  max_ttl: lasts('The longest `ttl` that can be requested.', '2h'),
  allowed_scopes: Type.Optional(shownScopes('The only scopes that it issues, relative to it; absent: all.')),
  description: Type.Optional(text('What it is for.', 'The database of the shop.')),
  revocation: Type.String({
    enum: ['exact', 'expiry_only'],
    description: '`exact`: a revoked credential ends at once. `expiry_only`: it lasts until its expiry.',
  }),
  recovery: Type.Optional(
    Type.String({
      enum: ['none'],
      description:
        'What an interrupted issue left upstream cannot be found; nobody has received it, and it lasts until its own expiry.',
    }),
  ),
  environment: Type.Optional(Environment),
  scope_forms: ScopeForms,
  broken: Type.Optional(flag('true: its stored configuration cannot be opened, so it issues nothing')),
}
export const BackendInfo = Type.Object(backendInfo, { title: 'BackendInfo' })

export const BackendList = Type.Object(
  { backends: Type.Array(BackendInfo, { description: 'All backends.' }) },
  { title: 'BackendList' },
)

const time = (description: string) =>
  Type.Optional(
    Type.String({
      maxLength: 64,
      description: `${description} A time (ISO 8601) or a duration back from now.`,
      examples: ['24h'],
      ...accepts({
        anyOf: [{ format: 'date-time' }, { format: 'date' }, { minLength: 2, pattern: DURATION_PATTERN }],
      }),
    }),
  )
const Action = Type.String({
  enum: ACTION_NAMES,
  description: 'What happened. docs/reference/audit.md explains each.',
})
export const auditFilters = {
  backend: Type.Optional(name('Only entries about this backend.', 'orders')),
  since: time('Only entries from then on.'),
  until: time('Only entries up to then.'),
  agent: Type.Optional(AgentRef),
  actor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 264,
      description:
        'Only what this one did: an agent by id or name, `operator:` and an e-mail address, `local` or `system`.',
      examples: ['local'],
    }),
  ),
  action: Type.Optional(Action),
  credential: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Only entries about the credential with this id.',
      examples: [EXAMPLE_ID.credential],
      ...accepts({ pattern: '^cred_[0-9a-hjkmnp-tv-z]{26}$' }),
    }),
  ),
}

export const AuditQuery = Type.Object({ ...auditFilters, ...Page }, { additionalProperties: false })

export const AuditEntry = Type.Object(
  {
    id: text('Id of the entry. Ids are in the order of time.', EXAMPLE_ID.audit),
    timestamp: timestamp('When it happened: RFC 3339, UTC.'),
    action: Action,
    outcome: Type.String({ enum: ['ok', 'denied', 'failed'], description: 'How it ended.' }),
    agent_id: nullable(agentId('The agent that it is about.')),
    agent_name: nullable(text('Its name then.', 'ci-build')),
    actor: text(
      'Who acted: id of an agent, `operator:` and an e-mail address, `local` or `system`.',
      'local',
    ),
    backend: nullable(text('Name of the backend.', 'orders')),
    credential_id: nullable(credentialId('Id of the credential.')),
    scopes: nullable(shownScopes('The scopes that were requested or granted.')),
    ttl: nullable(lasts('The requested lifetime.')),
    ip_address: nullable(text('Address of the client.', '192.0.2.7')),
    user_agent: nullable(text('User agent of the client, at most 256 characters.', 'mayfly/0.2.0')),
    auth_method: nullable(text('How the caller authenticated.', 'bearer')),
    request_id: nullable(text('The `X-Request-Id` of the reply.', EXAMPLE_ID.request)),
    metadata: nullable(free('What the request sent as `metadata`.', { job: 'build-42' })),
    details: nullable(free('More about this action.', { code: 'ttl_exceeded' })),
  },
  { title: 'AuditEntry' },
)

export const AuditPage = Type.Object(
  {
    entries: Type.Array(AuditEntry, { description: 'Newest first.' }),
    next_cursor: nullable(
      text('The `cursor` of the next page; null on the last one.', '06dzq5t9w3k7n1c6v4x8m2p0hd'),
    ),
  },
  { title: 'AuditPage' },
)
