import { Type } from 'typebox'
import { runRef } from './runs.ts'
import * as Field from './shared.ts'
import { Uses, WithUses } from './uses.ts'

/** Group A, `/api/v1`. */
export const ASKED_SCOPES =
  'Relative to the backend (`read`) or absolute (`orders:read`). Left out: all that the agent holds on it.'
export const CredentialRequest = Field.sent('CredentialRequest', {
  backend: Field.name('Name of the backend.', 'orders'),
  ttl: Type.Optional(Field.duration('How long the credential lasts; default: `default_ttl` of the backend.')),
  scopes: Type.Optional(Field.scopes(ASKED_SCOPES)),
  metadata: Type.Optional(Field.Metadata),
  params: Type.Optional(Field.Params),
  run: Type.Optional(runRef('Id of a run: the credential ends with it.')),
  uses: WithUses,
})

export const Fields = Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
  description: 'The parts of a credential that has several, such as `username` and `password`.',
  examples: [{ username: 'mf_06dznf1k', host: 'db.example.com', port: 5432 }],
})

export const Secret = Field.text(
  'The credential itself, or the JSON text of its parts. Shown once.',
  'eyJhbGciOiJFUzI1NiJ9.e30.c2ln',
)
export const expiresAt = Field.timestamp('When it expires: RFC 3339, UTC.')
export const createdAt = Field.timestamp('When it was created: RFC 3339, UTC.')
const upstreamExpiresAt = Field.timestamp(
  'When the upstream ends the credential, where that is later than `expires_at`.',
)

export const LeftOut = Field.shownScopes(
  'Scopes of the agent that this backend can never give, if the request named none; absent: none.',
)

export const IssuedCredential = Field.shown('IssuedCredential', {
  id: Field.credentialId('Id of the credential.'),
  token: Type.Optional(Secret),
  backend: Field.text('Name of the backend.', 'orders'),
  scopes: Field.shownScopes('The scopes that were granted.'),
  expires_at: expiresAt,
  created_at: createdAt,
  ttl: Field.lasts('How long it was requested for.'),
  upstream_expires_at: Type.Optional(upstreamExpiresAt),
  fields: Type.Optional(Fields),
  left_out: Type.Optional(LeftOut),
  uses: Uses,
})

export const CredentialStatus = Field.oneOf(
  ['active', 'expired', 'revoked'],
  'Whether it can be used, and if not, how it ended.',
)

export const UpstreamEnd = Field.oneOf(
  ['revoked', 'pending', 'expires'],
  '`revoked`: gone upstream too; `pending`: not yet, it is being tried; `expires`: accepted there until its own expiry',
)

export const CredentialInfo = Field.shown('CredentialInfo', {
  id: Field.credentialId('Id of the credential.'),
  backend: Field.text('Name of the backend.', 'orders'),
  scopes: Field.shownScopes('The scopes that were granted.'),
  expires_at: expiresAt,
  created_at: createdAt,
  revoked: Field.flag('Whether it was revoked.'),
  status: CredentialStatus,
  agent: Field.text('Name of the agent that holds it.', 'ci-build'),
  run: Type.Optional(Field.text('The run that it ends with; absent: none.', Field.EXAMPLE_ID.run)),
  revoked_at: Type.Optional(Field.timestamp('When it was revoked.')),
  upstream: Type.Optional(UpstreamEnd),
  upstream_expires_at: Type.Optional(upstreamExpiresAt),
})

export const RevokedCredential = Field.shown('RevokedCredential', {
  id: Field.credentialId('Id of the credential.'),
  revoked: Field.flag('Always true.'),
  revoked_at: Field.timestamp('When it ended, also if that was before this request.'),
  upstream: UpstreamEnd,
})

export const CredentialId = Type.Object({
  id: Field.text(
    'Id of the credential.',
    Field.EXAMPLE_ID.credential,
    { minLength: 1, maxLength: 128 },
    Field.accepts({ pattern: '^cred_[0-9a-hjkmnp-tv-z]{26}$' }),
  ),
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
    form: Field.text('A scope; `<name>` stands for a name.', 'orders:read'),
    gives: Field.text('What a credential with it may do.', 'read orders'),
  }),
  { description: 'The forms of a scope, relative to the backend, with what they give.' },
)

/** What every agent may see of a backend. */
export const backendInfo = {
  id: Field.text('Its name.', 'orders'),
  type: Field.text('Its kind.', 'postgres'),
  default_ttl: Field.lasts('How long a credential lasts if no `ttl` is requested.', '20m'),
  max_ttl: Field.lasts('The longest `ttl` that can be requested.', '2h'),
  allowed_scopes: Type.Optional(
    Field.shownScopes('The only scopes that it issues, relative to it; absent: all.'),
  ),
  description: Type.Optional(Field.text('What it is for.', 'The database of the shop.')),
  revocation: Field.oneOf(
    ['exact', 'expiry_only'],
    '`exact`: a revoked credential ends at once. `expiry_only`: it lasts until its expiry.',
  ),
  recovery: Type.Optional(
    Field.oneOf(
      ['none'],
      'What an interrupted issue left upstream cannot be found; nobody has received it, and it lasts until its own expiry.',
    ),
  ),
  environment: Type.Optional(Environment),
  scope_forms: ScopeForms,
  broken: Type.Optional(Field.flag('true: its stored configuration cannot be opened, so it issues nothing')),
}
export const BackendInfo = Field.shown('BackendInfo', backendInfo)

export const BackendList = Field.shown('BackendList', {
  backends: Type.Array(BackendInfo, { description: 'All backends.' }),
})

const time = (description: string) =>
  Type.Optional(
    Field.text(
      `${description} A time (ISO 8601) or a duration back from now.`,
      '24h',
      { maxLength: 64 },
      Field.accepts({
        anyOf: [
          { format: 'date-time' },
          { format: 'date' },
          { minLength: 2, pattern: Field.DURATION_PATTERN },
        ],
      }),
    ),
  )
const Action = Field.oneOf(Field.ACTION_NAMES, 'What happened. docs/reference/audit.md explains each.')
export const auditFilters = {
  backend: Type.Optional(Field.name('Only entries about this backend.', 'orders')),
  since: time('Only entries from then on.'),
  until: time('Only entries up to then.'),
  agent: Type.Optional(Field.AgentRef),
  actor: Type.Optional(
    Field.text(
      'Only what this one did: an agent by id or name, `operator:` and an e-mail address, `local` or `system`.',
      'local',
      {
        minLength: 1,
        maxLength: 264,
      },
    ),
  ),
  action: Type.Optional(Action),
  run: Type.Optional(runRef('Only entries about the run with this id, and what was done for it.')),
  credential: Type.Optional(
    Field.text(
      'Only entries about the credential with this id.',
      Field.EXAMPLE_ID.credential,
      { maxLength: 64 },
      Field.accepts({ pattern: '^cred_[0-9a-hjkmnp-tv-z]{26}$' }),
    ),
  ),
}

export const AuditQuery = Field.closed({ ...auditFilters, ...Field.Page })

export const AuditEntry = Field.shown('AuditEntry', {
  id: Field.text('Id of the entry. Ids are in the order of time.', Field.EXAMPLE_ID.audit),
  timestamp: Field.timestamp('When it happened: RFC 3339, UTC.'),
  action: Action,
  outcome: Field.oneOf(['ok', 'denied', 'failed'], 'How it ended.'),
  agent_id: Field.nullable(Field.agentId('The agent that it is about.')),
  agent_name: Field.nullable(Field.text('Its name then.', 'ci-build')),
  actor: Field.text(
    'Who acted: id of an agent, `operator:` and an e-mail address, `local` or `system`.',
    'local',
  ),
  backend: Field.nullable(Field.text('Name of the backend.', 'orders')),
  credential_id: Field.nullable(Field.credentialId('Id of the credential.')),
  run: Field.nullable(Field.text('Id of the run that it is about, or was done for.', Field.EXAMPLE_ID.run)),
  scopes: Field.nullable(Field.shownScopes('The scopes that were requested or granted.')),
  ttl: Field.nullable(Field.lasts('The requested lifetime.')),
  ip_address: Field.nullable(Field.text('Address of the client.', '192.0.2.7')),
  user_agent: Field.nullable(Field.text('User agent of the client, at most 256 characters.', 'mayfly/0.2.0')),
  auth_method: Field.nullable(Field.text('How the caller authenticated.', 'bearer')),
  request_id: Field.nullable(Field.text('The `X-Request-Id` of the reply.', Field.EXAMPLE_ID.request)),
  metadata: Field.nullable(Field.free('What the request sent as `metadata`.', { job: 'build-42' })),
  details: Field.nullable(Field.free('More about this action.', { code: 'ttl_exceeded' })),
})

export const AuditPage = Field.shown('AuditPage', {
  entries: Type.Array(AuditEntry, { description: 'Newest first.' }),
  next_cursor: Field.nullable(
    Field.text('The `cursor` of the next page; null on the last one.', '06dzq5t9w3k7n1c6v4x8m2p0hd'),
  ),
})
