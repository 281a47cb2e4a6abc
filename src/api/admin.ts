import { Type } from 'typebox'
import { MAX_AUDIENCES } from '../domain/audience.ts'
import { MAX_TEXT_LENGTH } from '../domain/limits.ts'
import { BackendInfo, CredentialStatus, UpstreamEnd } from './api-v1.ts'
import { Duration, Name, nullable, Page, Scope, Scopes, Timestamp, Warnings } from './shared.ts'

/** `/v1/admin`. */
export const PageQuery = Type.Object(Page, { additionalProperties: false })

export const Agent = Type.Object({
  id: Type.String(),
  name: Type.String(),
  scopes: Type.Array(Type.String(), { description: 'the scopes it holds now, time-limited ones included' }),
  created_at: Timestamp,
  last_used: nullable(Timestamp),
  expires_at: nullable(Timestamp),
  policy: nullable(
    Type.String({
      description: 'the policy that it came under, whoever approved it, or that its creator came under',
    }),
  ),
  audiences: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'what it may ask tokens for, beside the issuer and the audiences of the server; absent: none',
    }),
  ),
  description: Type.Optional(Type.String()),
  previous_secrets_until: Type.Optional(
    Type.String({ ...Timestamp, description: 'while the secrets before the last rotation are still valid' }),
  ),
})

const Audiences = Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
  maxItems: MAX_AUDIENCES,
  description: 'audiences it may request tokens for, in addition to the issuer and those of the server',
  examples: [['sts.amazonaws.com']],
})

export const CreateAgent = Type.Object(
  {
    name: Name,
    scopes: Type.Optional(Scopes),
    expires_in: Type.Optional(Duration),
    audiences: Type.Optional(Audiences),
    description: Type.Optional(Type.String({ maxLength: MAX_TEXT_LENGTH, description: 'for people' })),
  },
  { additionalProperties: false },
)

export const ChangeAgent = Type.Object(
  {
    scopes: Type.Optional(
      Type.Array(Scope, {
        maxItems: 64,
        description: 'all scopes that it is to hold; ends time-limited ones',
      }),
    ),
    add_scopes: Type.Optional(Scopes),
    remove_scopes: Type.Optional(
      Type.Array(Scope, { maxItems: 64, description: 'each as the agent lists it' }),
    ),
    expires_in: Type.Optional(Duration),
    expires_at: Type.Optional(
      nullable(Type.String({ ...Timestamp, description: 'null: it does not expire' })),
    ),
    audiences: Type.Optional(Audiences),
    description: Type.Optional(
      nullable(Type.String({ maxLength: MAX_TEXT_LENGTH, description: 'null or empty: none' })),
    ),
    revoke: Type.Optional(
      Type.Boolean({ description: 'true: revoke the credentials that its scopes no longer cover' }),
    ),
  },
  { additionalProperties: false },
)

export const ChangedAgent = Type.Object({
  ...Agent.properties,
  warnings: Warnings,
  out_of_scope: Type.Optional(
    Type.Array(
      Type.Object({
        id: Type.String(),
        backend: Type.String(),
        scopes: Type.Array(Type.String()),
        expires_at: Timestamp,
        status: CredentialStatus,
      }),
      {
        description:
          'credentials that its scopes no longer cover: `active`, or `revoked` with `revoke`; at most 1000; absent: none',
      },
    ),
  ),
})

export const RotateAgent = Type.Object(
  {
    grace: Type.Optional(
      Type.String({
        maxLength: 256,
        description: 'how long the old token and client secret stay valid; default: not at all',
        examples: ['1h'],
      }),
    ),
  },
  { additionalProperties: false },
)

const newSecrets = {
  id: Type.String(),
  name: Type.String(),
  token: Type.String({ description: 'shown once' }),
  scopes: Type.Array(Type.String()),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  oidc: Type.Object({ client_id: Type.String(), client_secret: Type.String({ description: 'shown once' }) }),
  signing_key_id: Type.String(),
  signing_email: Type.String(),
}

export const CreatedAgent = Type.Object({ ...newSecrets, warnings: Warnings })

export const RotatedAgent = Type.Object({
  ...newSecrets,
  previous_valid_until: nullable(
    Type.String({ ...Timestamp, description: 'when the old secrets end; null: they have ended' }),
  ),
})

export const NameParam = Type.Object({ name: Name })

const Config = Type.Record(Type.String(), Type.Unknown(), {
  description: 'by the schema of the kind; see GET /v1/admin/kinds',
})
const rules = {
  default_ttl: Type.Optional(Duration),
  max_ttl: Type.Optional(Duration),
  allowed_scopes: Type.Optional(nullable(Scopes)),
  description: Type.Optional(Type.String({ maxLength: MAX_TEXT_LENGTH })),
  rate: Type.Optional(nullable(Type.String({ maxLength: 32, examples: ['10/hour'] }))),
  max_active: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'active credentials; n nodes may together admit up to n times as many',
      }),
    ),
  ),
}

export const CreateBackend = Type.Object(
  {
    type: Type.String({ maxLength: 64 }),
    name: Type.Optional(Name),
    config: Type.Optional(Config),
    ...rules,
  },
  { additionalProperties: false },
)
export const ChangeBackend = Type.Object(
  { type: Type.Optional(Type.String({ maxLength: 64 })), config: Type.Optional(Config), ...rules },
  { additionalProperties: false },
)
export const CheckQuery = Type.Object(
  {
    check: Type.Optional(
      Type.Boolean({ description: 'false: store the backend without checking the upstream' }),
    ),
  },
  { additionalProperties: false },
)
export const ChangeQuery = Type.Object(
  {
    ...CheckQuery.properties,
    force: Type.Optional(
      Type.Boolean({
        description:
          'true: the new address is the same upstream; accept the change while credentials are active',
      }),
    ),
  },
  { additionalProperties: false },
)
export const ForceQuery = Type.Object(
  { force: Type.Optional(Type.Boolean({ description: 'true: revoke active credentials first' })) },
  { additionalProperties: false },
)

const deletion = {
  since: Timestamp,
  remaining: Type.Integer({ description: 'credentials that have not ended yet' }),
}
export const BackendDeletion = Type.Object({
  name: Type.String(),
  ...deletion,
  poll_url: Type.String({ description: 'shows the progress; 404 when the backend is deleted' }),
})
export const Backend = Type.Object({
  ...BackendInfo.properties,
  name: Type.String(),
  created_at: Timestamp,
  rate: Type.Optional(Type.String()),
  max_active: Type.Optional(Type.Integer()),
  config: Type.Record(Type.String(), Type.Unknown(), { description: 'every secret reads [redacted]' }),
  deletion: Type.Optional(Type.Object(deletion, { description: 'while it is being deleted' })),
  warnings: Type.Optional(
    Type.Array(Type.String(), { description: 'of the trial when it was stored; absent: none' }),
  ),
})

export const Kind = Type.Object({
  type: Type.String(),
  title: Type.String(),
  revocation: Type.String({ enum: ['exact', 'expiry_only'] }),
  scopes: Type.Object({ help: Type.String(), examples: Type.Array(Type.String()) }),
  config: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema; x-secret marks secrets' }),
  params: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema' }),
})

export const TokenQuery = Type.Object(
  {
    backend: Type.Optional(Name),
    agent: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description: 'id or name of an agent; a name refers to its current or most recent owner',
      }),
    ),
    status: Type.Optional(CredentialStatus),
    ...Page,
  },
  { additionalProperties: false },
)

export const Token = Type.Object({
  id: Type.String(),
  agent_id: Type.String(),
  agent_name: Type.String(),
  backend: Type.String(),
  scopes: Type.Array(Type.String()),
  status: CredentialStatus,
  upstream: Type.Optional(UpstreamEnd),
  expires_at: Timestamp,
  created_at: Timestamp,
})

export const AgentKey = Type.Object({
  key_id: Type.String(),
  agent_id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  public_key: Type.String(),
  created_at: Timestamp,
})

export const Plugin = Type.Object({ name: Type.String(), version: Type.String(), builtin: Type.Boolean() })
