import { type TUnsafe, Type } from 'typebox'
import {
  HEALTH_REASONS,
  HEALTH_STATES,
  type HealthReason,
  type HealthState,
} from '../domain/backend-health.ts'
import { MAX_COUNTED_OF_BACKEND, MAX_TEXT_LENGTH } from '../domain/limits.ts'
import { backendInfo, createdAt, ScopeForms } from './api-v1.ts'
import * as Field from './shared.ts'
import { UseRules } from './uses.ts'

/** `/v1/admin/backends` and `/v1/admin/kinds`. */
const Config = Field.free(
  'How to reach the upstream, by the schema of the kind; see `GET /v1/admin/kinds`.',
  {
    audience: 'orders-api',
  },
)
export const backendRules = {
  default_ttl: Type.Optional(
    Field.lifetime('How long a credential lasts if no `ttl` is requested; default: 1h.', '10m'),
  ),
  max_ttl: Type.Optional(Field.lifetime('The longest `ttl` that can be requested; default: 24h.', '24h')),
  allowed_scopes: Type.Optional(
    Field.nullable(
      Field.scopes('The only scopes that it issues, relative to it; null: all, which is the default.'),
    ),
  ),
  description: Type.Optional(
    Field.text('What it is for.', 'The database of the shop.', { maxLength: MAX_TEXT_LENGTH }),
  ),
  rate: Type.Optional(
    Field.nullable(
      Field.text(
        'How many credentials it issues in a second, minute, hour or day; null: no limit.',
        '10/hour',
        { maxLength: 32 },
        Field.accepts({ pattern: '^[1-9][0-9]{0,8}/(second|minute|hour|day)$' }),
      ),
    ),
  ),
  max_active: Type.Optional(
    Field.nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: 'Active credentials; n nodes may together admit up to n times as many. null: no limit.',
        examples: [100],
      }),
    ),
  ),
  rotate_root_after: Type.Optional(
    Field.nullable(
      Field.lifetime(
        'The age of its root secret at which the receivers of notifications are told; null: none, which is the default.',
        '2160h',
      ),
    ),
  ),
  uses: Type.Optional(
    Type.Union([UseRules, Type.Null()], {
      description:
        'Where and how its credentials are used, beside what its kind says; null: no more than that. Only the local host and holders of `admin:*` set it to anything else.',
      examples: [{ allow: [{ methods: ['POST'], path: '/graphql' }] }],
    }),
  ),
}

/** The name of a kind. */
const type = Field.text('The kind.', 'jwt', { maxLength: 64 })
const ownName = Type.Optional(Field.newName('Its name; default: the name of its kind.', 'orders'))

/** The document has one schema for each kind, in place of these two (`kind-schemas.ts`). */
export const CreateBackend = Field.sent('CreateBackend', {
  type,
  name: ownName,
  config: Type.Optional(Config),
  ...backendRules,
})
export const ChangeBackend = Field.sent('ChangeBackend', {
  type: Type.Optional(type),
  config: Type.Optional(Config),
  ...backendRules,
})

export const CheckQuery = Field.closed({
  check: Type.Optional(Field.flag('false: store the backend without checking the upstream')),
})
export const ChangeQuery = Field.closed({
  ...CheckQuery.properties,
  force: Type.Optional(
    Field.flag('true: the new address is the same upstream; accept the change while credentials are active'),
  ),
})
export const ForceQuery = Field.closed({
  force: Type.Optional(Field.flag('true: revoke active credentials first')),
})

const deletion = {
  since: Field.timestamp('When it began.'),
  remaining: Field.count('Credentials that have not ended yet.', 12000),
}
export const BackendDeletion = Field.shown('BackendDeletion', {
  name: Field.text('Name of the backend.', 'orders'),
  ...deletion,
  poll_url: Field.text('Shows the progress; 404 when the backend is deleted.', '/v1/admin/backends/orders'),
})
const reasons = Object.keys(HEALTH_REASONS) as HealthReason[]
// Unions of lists: TypeBox finds no type for them by itself.
export const healthState = Type.Union(
  HEALTH_STATES.map((state) => Type.Literal(state)),
  {
    description:
      '`unknown`: neither used nor checked since the node that answers started, or since its configuration changed.',
    examples: ['up'],
  },
) as unknown as TUnsafe<HealthState>
export const healthReason = Type.Union([...reasons.map((reason) => Type.Literal(reason)), Type.Null()], {
  description: `Why. ${Field.HEALTH_MEANINGS}`,
  examples: ['refused'],
}) as unknown as TUnsafe<HealthReason | null>
/** One of the same reasons, where there is one. */
export const failureReason = (description: string) => Field.oneOf(reasons, description)
const breaker = (what: string) =>
  Type.Union([Type.Literal('closed'), Type.Literal('open'), Type.Literal('trying')], {
    description: `Whether calls that ${what} are let through: \`open\`: none; \`trying\`: the next one decides.`,
    examples: ['closed'],
  })
export const BackendHealth = Type.Object(
  {
    state: healthState,
    last_success: Field.nullable(Field.timestamp('When the upstream last did what it was asked.')),
    last_failure: Field.nullable(Field.timestamp('When it last failed.')),
    last_failure_reason: healthReason,
    last_failure_detail: Type.Optional(
      Field.text(
        'Words of the kind and of the upstream; only for the local host and holders of `admin:*`.',
        'PostgreSQL cannot be reached.: ECONNREFUSED: connect ECONNREFUSED 10.0.0.5:5432',
      ),
    ),
    breakers: Type.Object(
      { issuing: breaker('issue'), revoking: breaker('revoke') },
      { description: 'They stop calls to an upstream that fails again and again.' },
    ),
    secret_since: Type.Optional(
      Field.timestamp(
        'Since when Mayfly has the secret that it logs in with; absent: its configuration has no secret.',
      ),
    ),
  },
  {
    title: 'BackendHealth',
    description: 'From the calls and checks of the node that answers. An idle backend is not probed.',
  },
)
export const CheckedBackend = Field.shown('CheckedBackend', {
  name: Field.text('Name of the backend.', 'orders'),
  health: BackendHealth,
  warnings: Type.Optional(Field.Warnings),
})

export const Backend = Field.shown('Backend', {
  ...backendInfo,
  name: Field.text('Its name, the same as `id`.', 'orders'),
  created_at: createdAt,
  rate: Type.Optional(Field.text('How many credentials it issues in a time; absent: no limit.', '10/hour')),
  max_active: Type.Optional(Field.count('How many active credentials it has at most.', 100)),
  rotate_root_after: Type.Optional(
    Field.lasts('The age of its root secret at which the receivers of notifications are told.', '2160h'),
  ),
  config: Field.free('How it reaches its upstream; every secret reads [redacted].', {
    audience: 'orders-api',
    signing_key: '[redacted]',
  }),
  uses: Type.Optional(UseRules),
  health: Type.Optional(BackendHealth),
  unended: Type.Optional(
    Type.Object(
      {
        count: Field.count('How many.', 12),
        since: Field.timestamp('When the first of them ended.'),
      },
      {
        description:
          'Credentials that have ended and that the upstream may still accept: it has not confirmed their end yet. Absent: none.',
      },
    ),
  ),
  live: Field.count(`Its credentials that have not ended, counted up to ${MAX_COUNTED_OF_BACKEND}.`, 12),
  last_revocation: Type.Optional(
    Field.timestamp('When its upstream last ended a credential; absent: not known.'),
  ),
  last_revocation_failure: Type.Optional(
    Type.Object(
      {
        at: Field.timestamp('When.'),
        reason: failureReason('Why.'),
        credential_id: Field.credentialId('The credential that was to end.'),
      },
      { description: 'The last failed try to end a credential at its upstream; absent: none is known.' },
    ),
  ),
  deletion: Type.Optional(Type.Object(deletion, { description: 'While it is being deleted.' })),
  rotation: Type.Optional(
    Type.Object(
      {
        since: Field.timestamp('When it began.'),
        stage: Type.Union([Type.Literal('proposed'), Type.Literal('finishing')], {
          description:
            '`proposed`: the old or the new secret is valid. `finishing`: the new one is; the old one is still to be ended.',
        }),
      },
      { description: 'While its root secret is being replaced, also after an interruption.' },
    ),
  ),
  warnings: Type.Optional(Field.Warnings),
})

export const RootRotation = Field.shown('RootRotation', {
  name: Field.text('Name of the backend.', 'orders'),
  fields: Type.Array(Field.text('A field of the configuration.', 'password'), {
    description: 'The fields that have new values.',
  }),
  rotated_at: Field.timestamp('When the new secrets became the configuration.'),
  resumed: Field.flag(
    'true: it completed a rotation that had been interrupted, with the secrets of that one.',
  ),
  old_ended: Field.flag('false: the old secrets could not be ended yet; the server goes on trying.'),
})

const reconcileCursor = 'The `next_cursor` of the previous reply.'
export const Reconcile = Field.sent('Reconcile', {
  revoke: Type.Optional(
    Field.flag('true: end the accounts that are found, also those of other installations of Mayfly.'),
  ),
  cursor: Type.Optional(Field.text(reconcileCursor, 's1.1.4rGf', { minLength: 1, maxLength: 8_192 })),
})
export const Reconciled = Field.shown('Reconciled', {
  name: Field.text('Name of the backend.', 'orders'),
  seen: Field.count(
    'Accounts at the upstream that carry a name of Mayfly; earlier replies counted theirs.',
    120,
  ),
  accounts: Type.Array(
    Type.Object({
      credential_id: Field.credentialId('The credential that it was made for.'),
      expires_at: Type.Optional(
        Field.timestamp('When the upstream ends it; absent: the upstream does not say.'),
      ),
      outcome: Type.Union([Type.Literal('left'), Type.Literal('revoked'), Type.Literal('failed')], {
        description: '`failed`: the upstream refused; the log says why.',
      }),
    }),
    { description: 'Those that no living credential of this server owns.' },
  ),
  next_cursor: Field.nullable(
    Field.text('More is left to compare: send it as `cursor`; null: that was all.', 's1.1.4rGf'),
  ),
})

export const TryBackend = Field.sent('BackendTrial', {
  scopes: Type.Optional(
    Type.Array(Field.Scope, {
      minItems: 1,
      maxItems: 64,
      description:
        'The scopes to try, relative to the backend; default: the first example of its kind that it may issue.',
    }),
  ),
})
const TRY_STEPS = {
  check: 'logs in, and asks the upstream what issuing needs',
  issue: 'issues a credential, which nobody receives',
  revoke: 'ends it at the upstream; absent where the kind cannot',
} as const
type TryStep = keyof typeof TRY_STEPS
const tryStep = Object.keys(TRY_STEPS) as TryStep[]
export const TriedBackend = Field.shown('TriedBackend', {
  name: Field.text('Name of the backend.', 'orders'),
  scopes: Field.shownScopes('The scopes that were tried.'),
  steps: Type.Array(
    Type.Object({
      name: Type.Union(
        tryStep.map((step) => Type.Literal(step)),
        {
          description: tryStep.map((step) => `\`${step}\` ${TRY_STEPS[step]}.`).join(' '),
          examples: ['issue'],
        },
      ) as unknown as TUnsafe<TryStep>,
      ms: Field.count('How long it took.', 12),
      error: Type.Optional(
        Type.Union(
          reasons.map((reason) => Type.Literal(reason)),
          {
            description: `Why it failed. ${Field.HEALTH_MEANINGS} Absent: it worked.`,
            examples: ['permission_missing'],
          },
        ) as unknown as TUnsafe<HealthReason>,
      ),
      detail: Type.Optional(
        Field.text(
          'Words of the kind and of the upstream, such as the missing grant; only for the local host and holders of `admin:*`.',
          'Mayfly’s role lacks CREATEROLE.',
        ),
      ),
    }),
    { description: 'What was done, in this order, up to the first step that failed.' },
  ),
  id: Type.Optional(
    Field.credentialId('The credential that was issued, or tried to be; absent: it did not come to that.'),
  ),
  expires_at: Type.Optional(Field.timestamp('When the credential expires, unless it has ended.')),
  ended: Field.flag('Whether nothing that works is left at the upstream.'),
  note: Type.Optional(
    Field.text(
      'What is left, and when it ends; absent: nothing to say.',
      'This kind cannot end a credential early: this one works until 2026-11-21T10:15:00.000Z. Nobody has its secret.',
    ),
  ),
  warnings: Type.Optional(Field.Warnings),
})

export const Kind = Field.shown('Kind', {
  type: Field.text('Its name.', 'postgres'),
  title: Field.text('Its title.', 'PostgreSQL role'),
  revocation: backendInfo.revocation,
  recovery: backendInfo.recovery,
  environment: backendInfo.environment,
  scopes: Type.Object(
    {
      help: Field.text('What its scopes mean.', 'Any scope that the resource server understands.'),
      examples: Type.Array(Field.text('A scope.', 'orders:read'), { description: 'Scopes of this kind.' }),
      forms: ScopeForms,
    },
    { description: 'Its scopes, relative to a backend.' },
  ),
  config: Field.free('JSON Schema of the configuration; x-secret marks secrets.', { type: 'object' }),
  params: Field.free('JSON Schema of the options of a request.', { type: 'object' }),
})
