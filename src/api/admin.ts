import { Type } from 'typebox'
import { MAX_AUDIENCES } from '../domain/audience.ts'
import { END_REASONS } from '../domain/credential.ts'
import { MAX_COUNTED_OF_AGENT, MAX_REMAINING, MAX_TEXT_LENGTH } from '../domain/limits.ts'
import { PLUGIN_NAME_PATTERN, PLUGIN_PROTOCOLS, PLUGIN_RUNTIMES, SHA256_PATTERN } from '../domain/plugin.ts'
import { failureReason } from './admin-backends.ts'
import { auditFilters, CredentialStatus, createdAt, expiresAt, UpstreamEnd } from './api-v1.ts'
import { runRef } from './runs.ts'
import * as Field from './shared.ts'

/** `/v1/admin`, but for backends (`admin-backends.ts`) and enrollments (`enrollment.ts`). */
export const PageQuery = Field.closed(Field.Page)

export const NotifyParam = Type.Object({
  name: Type.String({ maxLength: 64, description: 'Name of the receiver.', examples: ['ops'] }),
})
export const TestedReceiver = Type.Object(
  {
    name: Field.text('Name of the receiver.', 'ops'),
    taken: Type.Boolean({ description: 'Whether the receiver took the message.', examples: [true] }),
    reason: Type.Optional(
      Type.Union(
        [
          Type.Literal('timeout'),
          Type.Literal('unreachable'),
          Type.Literal('refused'),
          Type.Literal('misconfigured'),
        ],
        { description: 'Why it did not; the log of the server says more.' },
      ),
    ),
  },
  { title: 'TestedReceiver' },
)

const MAX_ORIGIN = 1_024
const agentName = Field.text('Its name.', 'ci-build')
const signingKeyId = Field.text('Id of its signing key.', '3AA5C34371567BD2')
const AgentIdentity = Type.Object(
  {
    kind: Type.Union([Type.Literal('identity'), Type.Literal('platform')], {
      description: 'Whether the entry is one of `identities` or of `platforms`.',
    }),
    name: Field.text('The entry.', 'github'),
    issuer: Field.text('Who signs its tokens.', 'https://token.actions.githubusercontent.com'),
    values: Type.Array(Field.text('A value.', '26198271234'), {
      description:
        'What it is bound to: the values of the claims in its name, in their order; of a platform, the subject.',
    }),
  },
  {
    title: 'AgentIdentity',
    description: 'What an agent without secrets came under; absent: it has secrets of its own.',
  },
)
export const Agent = Field.shown('Agent', {
  id: Field.agentId('Id of the agent.'),
  name: agentName,
  scopes: Field.shownScopes('The scopes it holds now, time-limited ones included.'),
  created_at: createdAt,
  owner: Field.text(
    'Who answers for it: what was entered, or else who created or approved it.',
    'operator:alice@example.com',
  ),
  live: Field.count(`Its credentials that have not ended, counted up to ${MAX_COUNTED_OF_AGENT}.`, 3),
  last_used: Field.nullable(Field.timestamp('When it last called.')),
  last_used_from: Field.nullable(Field.text('The IP address of that call; null: not known.', '192.0.2.7')),
  expires_at: Field.nullable(Field.timestamp('When it expires.')),
  policy: Field.nullable(
    Field.text(
      'The policy that it came under, no matter who approved it, or that its creator came under.',
      'ci',
    ),
  ),
  signing_key_id: Field.nullable(
    Field.text(
      'Id of its signing key; null: an agent without secrets that has not asked for one yet.',
      '3AA5C34371567BD2',
    ),
  ),
  identity: Type.Optional(AgentIdentity),
  audiences: Type.Optional(
    Field.shownAudiences(
      'What it may ask tokens for, beside the issuer and the audiences of the server; absent: none.',
    ),
  ),
  description: Type.Optional(Field.text('What it is for.', 'the nightly report')),
  previous_secrets_until: Type.Optional(
    Field.timestamp('Until when the secrets before the last rotation are accepted; absent: they are not.'),
  ),
})

const Audiences = Type.Array(Field.Audience, {
  maxItems: MAX_AUDIENCES,
  description: 'Audiences it may request tokens for, in addition to the issuer and those of the server.',
  examples: [[Field.AUDIENCE]],
})
const Description = Field.text('What it is for; empty: nothing.', 'the nightly report', {
  maxLength: MAX_TEXT_LENGTH,
})

const Owner = Field.text(
  'Who answers for it, such as a person or a team; empty: who created or approved it.',
  'team-payments',
  { maxLength: MAX_TEXT_LENGTH },
)

export const CreateAgent = Field.sent('CreateAgent', {
  name: Field.newName('Its name; not one in use.', 'ci-build'),
  scopes: Type.Optional(
    Field.scopes('What it may do: absolute scopes that the caller holds; default: nothing.'),
  ),
  expires_in: Type.Optional(Field.lifetime('How long it lives; default: without end.', '24h')),
  audiences: Type.Optional(Audiences),
  description: Type.Optional(Description),
  owner: Type.Optional(Owner),
})

const Faults = (description: string) =>
  Type.Array(
    Field.shown('Fault', {
      source: Field.text('Where it is: a file with line and column, a flag, a variable.', 'mayfly.yaml:4:12'),
      message: Field.text('What is wrong.', 'log_level must be one of: debug, info, warn, error'),
    }),
    { description },
  )
export const Reloaded = Field.shown('Reloaded', {
  changed: Type.Array(Field.text('The setting.', 'policies'), {
    description: 'The settings that are others now, those whose files have changed included.',
  }),
  skipped: Faults('What is left out because it is faulty: recipes.'),
  faults: Faults('If there are any, nothing has changed.'),
})

export const Node = Field.shown('Node', {
  id: Field.text('Of its process.', '0m8x2k4q6v5x9m2c4t7w0z3y1k'),
  host: Field.text('The name of its machine.', 'mayfly-1'),
  version: Field.text('Its version of Mayfly.', '0.2.0'),
  this: Field.flag('Whether it is the node that answers.'),
  seen_at: Field.timestamp('When it last said so, which it does twice a minute.'),
  differs: Type.Array(Field.text('The setting.', 'policies'), {
    description:
      'The settings that all nodes need the same, and that it has otherwise than the node that answers.',
  }),
})

export const Settings = Field.shown('Settings', {
  settings: Type.Array(
    Type.Object({
      name: Field.text('The setting, as in the configuration file.', 'default_ttl'),
      value: Field.text('In the form of the file; a secret reads [redacted].', '1h'),
      origin: Field.text(
        'Where it comes from: file, line and column, variable, flag, `default`, or `derived` from others.',
        '/etc/mayfly/mayfly.yaml:12:3',
      ),
      reload: Field.flag('Whether a reload takes a new value; false: only a restart does.'),
      description: Field.text('What it is for.', 'Lifetime of an access token.'),
    }),
    { description: 'All of them, by name.' },
  ),
})

export const ChangeAgent = Field.sent('ChangeAgent', {
  scopes: Type.Optional(Field.scopes('All scopes that it is to hold; ends time-limited ones.')),
  add_scopes: Type.Optional(Field.scopes('Scopes that it is to hold, too.')),
  remove_scopes: Type.Optional(
    Field.scopes('Scopes that it is not to hold any more, each as the agent lists it.'),
  ),
  expires_in: Type.Optional(Field.lifetime('How long it lives from now.', '24h')),
  expires_at: Type.Optional(Field.nullable(Field.timestamp('When it expires; null: it does not.'))),
  audiences: Type.Optional(Audiences),
  description: Type.Optional(Field.nullable(Description)),
  owner: Type.Optional(Field.nullable(Owner)),
  revoke: Type.Optional(Field.flag('true: revoke the credentials that its scopes no longer cover')),
})

export const ChangedAgent = Field.shown('ChangedAgent', {
  ...Agent.properties,
  warnings: Field.ScopeWarnings,
  out_of_scope: Type.Optional(
    Type.Array(
      Type.Object({
        id: Field.credentialId('Id of the credential.'),
        backend: Field.text('Name of the backend.', 'orders'),
        scopes: Field.shownScopes('The scopes that were granted.'),
        expires_at: expiresAt,
        status: CredentialStatus,
      }),
      {
        description:
          'Credentials that its scopes no longer cover: `active`, or `revoked` with `revoke`; at most 1000; absent: none.',
      },
    ),
  ),
})

export const RotateAgent = Field.sent('AgentRotation', {
  grace: Type.Optional(Field.lifetime('How long the old secrets are accepted; default: not at all.', '1h')),
})

const newSecrets = {
  id: Field.agentId('Id of the agent.'),
  name: agentName,
  token: Field.text('Its bearer token. Shown once.', `ckr_${'7c'.repeat(24)}`),
  scopes: Field.shownScopes('The scopes that it holds.'),
  created_at: createdAt,
  expires_at: Field.nullable(Field.timestamp('When it expires.')),
  oidc: Type.Object(
    {
      client_id: Field.text('Its client id.', Field.EXAMPLE_ID.client),
      client_secret: Field.text('Its client secret. Shown once.', `cks_${'4f'.repeat(32)}`),
    },
    { description: 'Its login at `/oauth/token`.' },
  ),
  signing_key_id: signingKeyId,
  signing_email: Field.text('The address in its signing key.', 'ci-build@agents.example.com'),
}

export const CreatedAgent = Field.shown('CreatedAgent', { ...newSecrets, warnings: Field.ScopeWarnings })

export const RotatedAgent = Field.shown('RotatedAgent', {
  ...newSecrets,
  previous_valid_until: Field.nullable(
    Field.timestamp('Until when the old secrets are accepted; null: they ended.'),
  ),
})

export const NameParam = Type.Object({ name: Field.name('Its name.', 'ci-build') })

export const TokenQuery = Field.closed({
  backend: Type.Optional(Field.name('Only credentials of this backend.', 'orders')),
  agent: Type.Optional(Field.AgentRef),
  run: Type.Optional(runRef('Only credentials of the run with this id.')),
  status: Type.Optional(CredentialStatus),
  unended: Type.Optional(
    Field.flag('true: only those that have ended and whose end the upstream has not confirmed yet'),
  ),
  ...Field.Page,
})

export const WholeAuditQuery = Field.closed({
  ...auditFilters,
  agent_id: Type.Optional(
    Field.text('The same filter as `agent`; give one of them.', Field.EXAMPLE_ID.agent, { maxLength: 64 }),
  ),
  ...Field.Page,
})

export const Token = Field.shown('AnyCredential', {
  id: Field.credentialId('Id of the credential.'),
  agent_id: Field.agentId('The agent that holds it.'),
  agent_name: Field.text('Its name.', 'ci-build'),
  backend: Field.text('Name of the backend.', 'orders'),
  run: Type.Optional(Field.text('The run that it ends with; absent: none.', Field.EXAMPLE_ID.run)),
  scopes: Field.shownScopes('The scopes that were granted.'),
  status: CredentialStatus,
  upstream: Type.Optional(UpstreamEnd),
  expires_at: expiresAt,
  created_at: createdAt,
  ended_at: Type.Optional(Field.timestamp('When it ended; absent: it has not.')),
  end_reason: Type.Optional(Field.oneOf([...END_REASONS], 'Why it ended.')),
  attempts: Type.Optional(
    Field.count('How often ending it upstream has failed in a row; absent: not, or it is done.', 3),
  ),
  next_try: Type.Optional(
    Field.timestamp('When ending it upstream is tried next; absent: nothing is left to do.'),
  ),
  stuck: Type.Optional(
    Type.Literal(true, {
      description: 'Ending it upstream has failed six times or more; it is still tried.',
      examples: [true],
    }),
  ),
  failure: Type.Optional(failureReason('Why ending it upstream failed last.')),
})

export const RevokeAll = Field.sent('CredentialsToRevoke', {
  agent: Type.Optional(Field.AgentRef),
  backend: Type.Optional(Field.name('Only credentials of this backend.', 'orders')),
})
export const RevokedAll = Field.shown('RevokedCredentials', {
  revoked: Field.count('How many this request ended.', 12),
  remaining: Field.count(`How many are left, counted up to ${MAX_REMAINING}: send the request again.`, 0),
})

export const AgentKey = Field.shown('AgentKey', {
  key_id: Field.text('The long key id, as GnuPG shows it.', '3AA5C34371567BD2'),
  agent_id: Field.agentId('The agent that signs with it.'),
  name: Field.text('Name of the agent.', 'ci-build'),
  email: Field.text('The address in the key.', 'ci-build@agents.example.com'),
  public_key: Field.text('OpenPGP, ASCII armor.', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n…'),
  created_at: createdAt,
})

export const RotateKeys = Field.sent('KeyRotation', {
  grace: Type.Optional(Field.lifetime('How long the old key still verifies; default: not at all.', '1h')),
})
export const RotatedKeys = Field.shown('RotatedKeys', {
  key_id: Field.text('The key that signs from now on.', 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
  previous_valid_until: Field.nullable(
    Field.timestamp('Until when the old key verifies; null: it does not.'),
  ),
})

export const IssuerKey = Field.shown('IssuerKey', {
  key_id: Field.text('Its `kid` in `/oauth/jwks`.', 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'),
  algorithm: Field.text('How it signs (RFC 7518).', 'RS256'),
  created_at: createdAt,
  valid_until: Field.nullable(
    Field.timestamp('Until when it verifies tokens; null: it signs, and has no end.'),
  ),
})

const version = Field.text('Version of the kind.', '0.2.0')
const sha256 = {
  description: 'SHA-256 of the artefact, in hexadecimal form.',
  examples: ['c0ffee'.padEnd(64, '0')],
}
const origin = 'Where the artefact came from.'
const protocol = Type.Enum([...PLUGIN_PROTOCOLS], { description: 'The protocol that the plugin speaks.' })
const runtime = Type.Enum([...PLUGIN_RUNTIMES], {
  description:
    '`executable`: a program. `node`: a module or a package for Node.js, which runs under its permission model.',
})
const ORIGIN = 'npm:mayfly-plugin-acme@1.2.0'
export const Plugin = Field.shown('Plugin', {
  name: Field.text('The kind.', 'postgres'),
  version,
  builtin: Field.flag('Whether it comes with Mayfly, or from a recipe; everything below is absent then.'),
  sha256: Type.Optional(Type.String(sha256)),
  origin: Type.Optional(Field.text(origin, ORIGIN)),
  protocol: Type.Optional(protocol),
  runtime: Type.Optional(runtime),
  own_name: Type.Optional(
    Field.text('What the plugin calls itself, if it was added under another name.', 'github'),
  ),
  added_at: Type.Optional(Field.timestamp('When these bytes were added.')),
})
export const AddPlugin = Type.Object(
  {
    sha256: Type.String({ pattern: SHA256_PATTERN, ...sha256 }),
    runtime,
    protocol,
    origin: Field.text(origin, ORIGIN, { minLength: 1, maxLength: MAX_ORIGIN }),
    name: Type.Optional(
      Field.text('What the plugin must call itself.', 'acme', { pattern: PLUGIN_NAME_PATTERN }),
    ),
    as: Type.Optional(
      Field.text('The name of its kind here; absent: what the plugin calls itself.', 'acme-eu', {
        pattern: PLUGIN_NAME_PATTERN,
      }),
    ),
  },
  { title: 'AddPlugin', additionalProperties: false },
)
export const ReloadedPlugins = Field.shown('ReloadedPlugins', {
  loaded: Field.count('How many kinds there are.', 2),
  plugins: Type.Array(Plugin, { description: 'The kinds.' }),
})
export const ReloadedPlugin = Field.shown('ReloadedPlugin', {
  reloaded: Field.text('The kind.', 'postgres'),
  version,
})
