import { Type } from 'typebox'
import { ASKED_SCOPES, createdAt, expiresAt, Fields, LeftOut, Secret } from './api-v1.ts'
import { runRef } from './runs.ts'
import * as Field from './shared.ts'
import { Uses, WithUses } from './uses.ts'

/** Group B, `/v1`, as an agent sees it. */
const backend = Field.text('Name of the backend.', 'orders')
export const ActiveCredential = Field.shown('ActiveCredential', {
  id: Field.credentialId('Id of the credential.'),
  backend,
  expires_at: expiresAt,
  created_at: createdAt,
})

export const AgentStatus = Field.shown('AgentStatus', {
  id: Field.agentId('Id of the agent.'),
  name: Field.text('Its name.', 'ci-build'),
  scopes: Field.shownScopes('The scopes that it holds now.'),
  created_at: createdAt,
  last_used: Field.nullable(Field.timestamp('When it last called.')),
  expires_at: Field.nullable(Field.timestamp('When it expires.')),
  active_credentials: Type.Array(
    Type.Object({ id: Field.credentialId('Id of the credential.'), backend, expires_at: expiresAt }),
    { description: 'Its credentials that have not ended.' },
  ),
  pending_requests: Type.Array(
    Type.Object({
      id: Field.text('Id of the request.', Field.EXAMPLE_ID.enrollment),
      scopes: Field.shownScopes('The scopes that it asks for.'),
      created_at: createdAt,
      expires_at: Field.timestamp('Until when an administrator can decide.'),
    }),
    { description: 'Its requests for more scopes that wait for an administrator.' },
  ),
})

export const BackendName = Type.Object({ backend: Field.name('Name of the backend.', 'orders') })

const ttl = Field.duration('How long the credential lasts; default: `default_ttl` of the backend.')
export const IssueBody = Field.sent('IssueRequest', {
  ttl: Type.Optional(ttl),
  scopes: Type.Optional(Field.scopes(ASKED_SCOPES)),
  metadata: Type.Optional(Field.Metadata),
  params: Type.Optional(Field.Params),
  run: Type.Optional(runRef('Id of a run: the credential ends with it.')),
  uses: WithUses,
})

export const IssueQuery = Field.closed({
  ttl: Type.Optional(ttl),
  scope: Type.Optional(
    Type.Array(Field.Scope, {
      maxItems: 64,
      description: `Repeatable. ${ASKED_SCOPES}`,
      examples: [['read']],
    }),
  ),
  repo: Type.Optional(
    Type.Array(Field.text('A repository.', 'acme/shop', { maxLength: 256 }), {
      maxItems: 64,
      description: 'Repeatable. Only for kinds whose credentials can be narrowed to repositories.',
    }),
  ),
  run: Type.Optional(runRef('Id of a run: the credential ends with it.')),
  read_only: Type.Optional(Field.flag('Only for kinds whose credentials can be narrowed to reading.')),
})

export const BackendCredential = Field.shown('BackendCredential', {
  token: Type.Optional(Secret),
  expires_at: expiresAt,
  id: Field.credentialId('Id of the credential.'),
  ttl: Field.lasts('How long it was requested for.'),
  fields: Type.Optional(Fields),
  left_out: Type.Optional(LeftOut),
  uses: Uses,
})

export const SigningKeyQuery = Field.closed({
  format: Type.Optional(Field.oneOf(['git'], '`git` adds `git_config`.')),
  private_key: Type.Optional(Field.flag('`false` omits the private key and records nothing')),
})

const keyId = Field.text('The long key id, as GnuPG shows it.', '3AA5C34371567BD2')
const email = Field.text('The address in the key.', 'ci-build@agents.example.com')
export const SigningKey = Field.shown('SigningKey', {
  key_id: keyId,
  public_key: Field.text('OpenPGP, ASCII armor.', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n…'),
  private_key: Type.Optional(
    Field.text(
      'OpenPGP, ASCII armor; absent with ?private_key=false',
      '-----BEGIN PGP PRIVATE KEY BLOCK-----\n…',
    ),
  ),
  email,
  name: Field.text('The name in the key.', 'ci-build'),
  git_config: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'with ?format=git: the git settings',
      examples: [{ 'gpg.format': 'openpgp' }],
    }),
  ),
})

/** A commit by `ci-build`, as git would hash it. */
const COMMIT =
  'dHJlZSA0YjgyNWRjNjQyY2I2ZWI5YTA2MGU1NGJmOGQ2OTI4OGZiZWU0OTA0CmF1dGhvciBjaS1idWlsZCA8Y2ktYnVpbGRAYWdlbnRzLmV4YW1wbGUuY29tPiAxNzYzNzIwMTAwICswMDAwCmNvbW1pdHRlciBjaS1idWlsZCA8Y2ktYnVpbGRAYWdlbnRzLmV4YW1wbGUuY29tPiAxNzYzNzIwMTAwICswMDAwCgpGaXJzdAo='
export const SignBody = Type.Object(
  {
    data: Type.String({
      description: 'Base64 of the git object as git would hash it, at most 48000 bytes.',
      contentEncoding: 'base64',
      examples: [COMMIT],
      ...Field.accepts({
        minLength: 4,
        maxLength: 64_000,
        pattern: '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$',
      }),
    }),
    purpose: Type.Optional(
      Type.Enum(['git-commit', 'git-tag'], { description: 'What the data is; default: `git-commit`.' }),
    ),
  },
  {
    additionalProperties: false,
    title: 'SignRequest',
    examples: [{ data: COMMIT }],
  },
)

export const Signature = Field.shown('Signature', {
  signature: Field.text('Detached OpenPGP signature, ASCII armor.', '-----BEGIN PGP SIGNATURE-----\n…'),
  key_id: keyId,
  fingerprint: Field.text('Fingerprint of the key.', '0D69E11F12BDBA077B3726AB3AA5C34371567BD2'),
  created_at: Field.timestamp('The time in the signature.'),
  email,
  name: Field.text('The name in the key.', 'ci-build'),
})
