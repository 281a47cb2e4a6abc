import { Type } from 'typebox'
import { MAX_TEXT_LENGTH } from '../domain/limits.ts'
import { backendInfo, createdAt, ScopeForms } from './api-v1.ts'
import {
  accepts,
  closed,
  count,
  credentialId,
  flag,
  free,
  lifetime,
  newName,
  nullable,
  scopes,
  sent,
  shown,
  text,
  timestamp,
  Warnings,
} from './shared.ts'

/** `/v1/admin/backends` and `/v1/admin/kinds`. */
const Config = free('How to reach the upstream, by the schema of the kind; see `GET /v1/admin/kinds`.', {
  audience: 'orders-api',
})
export const backendRules = {
  default_ttl: Type.Optional(
    lifetime('How long a credential lasts if no `ttl` is requested; default: 1h.', '10m'),
  ),
  max_ttl: Type.Optional(lifetime('The longest `ttl` that can be requested; default: 24h.', '24h')),
  allowed_scopes: Type.Optional(
    nullable(scopes('The only scopes that it issues, relative to it; null: all, which is the default.')),
  ),
  description: Type.Optional(
    text('What it is for.', 'The database of the shop.', { maxLength: MAX_TEXT_LENGTH }),
  ),
  rate: Type.Optional(
    nullable(
      text(
        'How many credentials it issues in a second, minute, hour or day; null: no limit.',
        '10/hour',
        { maxLength: 32 },
        accepts({ pattern: '^[1-9][0-9]{0,8}/(second|minute|hour|day)$' }),
      ),
    ),
  ),
  max_active: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'Active credentials; n nodes may together admit up to n times as many. null: no limit.',
        examples: [100],
      }),
    ),
  ),
}

/** The name of a kind. */
const type = text('The kind.', 'jwt', { maxLength: 64 })
const ownName = Type.Optional(newName('Its name; default: the name of its kind.', 'orders'))

/** The document has one schema for each kind, in place of these two (`kind-schemas.ts`). */
export const CreateBackend = sent('CreateBackend', {
  type,
  name: ownName,
  config: Type.Optional(Config),
  ...backendRules,
})
export const ChangeBackend = sent('ChangeBackend', {
  type: Type.Optional(type),
  config: Type.Optional(Config),
  ...backendRules,
})

export const CheckQuery = closed({
  check: Type.Optional(flag('false: store the backend without checking the upstream')),
})
export const ChangeQuery = closed({
  ...CheckQuery.properties,
  force: Type.Optional(
    flag('true: the new address is the same upstream; accept the change while credentials are active'),
  ),
})
export const ForceQuery = closed({ force: Type.Optional(flag('true: revoke active credentials first')) })

const deletion = {
  since: timestamp('When it began.'),
  remaining: count('Credentials that have not ended yet.', 12000),
}
export const BackendDeletion = shown('BackendDeletion', {
  name: text('Name of the backend.', 'orders'),
  ...deletion,
  poll_url: text('Shows the progress; 404 when the backend is deleted.', '/v1/admin/backends/orders'),
})
export const Backend = shown('Backend', {
  ...backendInfo,
  name: text('Its name, the same as `id`.', 'orders'),
  created_at: createdAt,
  rate: Type.Optional(text('How many credentials it issues in a time; absent: no limit.', '10/hour')),
  max_active: Type.Optional(count('How many active credentials it has at most.', 100)),
  config: free('How it reaches its upstream; every secret reads [redacted].', {
    audience: 'orders-api',
    signing_key: '[redacted]',
  }),
  unended: Type.Optional(
    Type.Object(
      {
        count: count('How many.', 12),
        since: timestamp('When the first of them ended.'),
      },
      {
        description:
          'Credentials that have ended and that the upstream may still accept: it has not confirmed their end yet. Absent: none.',
      },
    ),
  ),
  deletion: Type.Optional(Type.Object(deletion, { description: 'While it is being deleted.' })),
  rotation: Type.Optional(
    Type.Object(
      {
        since: timestamp('When it began.'),
        stage: Type.Union([Type.Literal('proposed'), Type.Literal('finishing')], {
          description:
            '`proposed`: the old or the new secret is valid. `finishing`: the new one is; the old one is still to be ended.',
        }),
      },
      { description: 'While its root secret is being replaced, also after an interruption.' },
    ),
  ),
  warnings: Type.Optional(Warnings),
})

export const RootRotation = shown('RootRotation', {
  name: text('Name of the backend.', 'orders'),
  fields: Type.Array(text('A field of the configuration.', 'password'), {
    description: 'The fields that have new values.',
  }),
  rotated_at: timestamp('When the new secrets became the configuration.'),
  resumed: flag('true: it completed a rotation that had been interrupted, with the secrets of that one.'),
  old_ended: flag('false: the old secrets could not be ended yet; the server goes on trying.'),
})

const reconcileCursor = 'The `next_cursor` of the previous reply.'
export const Reconcile = sent('Reconcile', {
  revoke: Type.Optional(
    flag('true: end the accounts that are found, also those of other installations of Mayfly.'),
  ),
  cursor: Type.Optional(text(reconcileCursor, 's1.1.4rGf', { minLength: 1, maxLength: 8_192 })),
})
export const Reconciled = shown('Reconciled', {
  name: text('Name of the backend.', 'orders'),
  seen: count('Accounts at the upstream that carry a name of Mayfly; earlier replies counted theirs.', 120),
  accounts: Type.Array(
    Type.Object({
      credential_id: credentialId('The credential that it was made for.'),
      expires_at: Type.Optional(timestamp('When the upstream ends it; absent: the upstream does not say.')),
      outcome: Type.Union([Type.Literal('left'), Type.Literal('revoked'), Type.Literal('failed')], {
        description: '`failed`: the upstream refused; the log says why.',
      }),
    }),
    { description: 'Those that no living credential of this server owns.' },
  ),
  next_cursor: nullable(
    text('More is left to compare: send it as `cursor`; null: that was all.', 's1.1.4rGf'),
  ),
})

export const Kind = shown('Kind', {
  type: text('Its name.', 'postgres'),
  title: text('Its title.', 'PostgreSQL role'),
  revocation: backendInfo.revocation,
  recovery: backendInfo.recovery,
  environment: backendInfo.environment,
  scopes: Type.Object(
    {
      help: text('What its scopes mean.', 'Any scope that the resource server understands.'),
      examples: Type.Array(text('A scope.', 'orders:read'), { description: 'Scopes of this kind.' }),
      forms: ScopeForms,
    },
    { description: 'Its scopes, relative to a backend.' },
  ),
  config: free('JSON Schema of the configuration; x-secret marks secrets.', { type: 'object' }),
  params: free('JSON Schema of the options of a request.', { type: 'object' }),
})
