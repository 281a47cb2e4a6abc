import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { ACTIONS } from '../domain/actions.ts'
import { HEALTH_REASONS, type HealthReason } from '../domain/backend-health.ts'
import { MAX_METADATA_KEYS, MAX_NAME_LENGTH } from '../domain/limits.ts'
import { OAUTH_ERRORS } from '../domain/oauth-problem.ts'
import { PROBLEMS } from '../domain/problems.ts'

/**
 * Pieces that both groups use. Wire names are snake_case. A schema with a `title` is a component of the OpenAPI document
 * under that name. Every property has a description, and every text an example or its values; a test checks that.
 */

export const ACCEPTS_MARK = 'x-accepts'
export const DOCUMENTED_AS_MARK = 'x-documented-as'

/**
 * Constraints that the OpenAPI document states beside those of the schema. The validator passes over them: core checks
 * them, answers with a message of its own, and records the denial.
 */
export const accepts = (constraints: object) => ({ [ACCEPTS_MARK]: constraints })
/** What the document says instead of the schema, where a form that differs by its fields is clearer. */
export const documentedAs = (schema: object) => ({ [DOCUMENTED_AS_MARK]: schema })

/** Marks a schema whose body may be absent; a JSON `null` is still refused. */
export const OPTIONAL_BODY_MARK = 'x-optional-body'

/** Adds the mark: `body: optionalBody(Type.Object({ … }))`. An absent body is `undefined`. */
export function optionalBody<T extends object>(schema: T): T {
  // Copy descriptors: TypeBox keeps facts about a schema in non-enumerable properties.
  return Object.create(Object.prototype, {
    ...Object.getOwnPropertyDescriptors(schema),
    [OPTIONAL_BODY_MARK]: { value: true, enumerable: true },
  })
}

/** What a request sends: fields that it does not name are refused. */
export const sent = <F extends TProperties>(title: string, fields: F) =>
  Type.Object(fields, { additionalProperties: false, title })
/** As `sent`, without a name in the document: a query. */
export const closed = <F extends TProperties>(fields: F) =>
  Type.Object(fields, { additionalProperties: false })
/** What a reply shows: fields that it does not name are not sent. */
export const shown = <F extends TProperties>(title: string, fields: F) => Type.Object(fields, { title })

/** `rules`: of JSON Schema; `more`: what `accepts` makes. */
export const text = (description: string, example: string, rules: object = {}, more: object = {}) =>
  Type.String({ ...rules, description, examples: [example], ...more })
export const oneOf = (values: string[], description: string) => Type.String({ enum: values, description })

export const timestamp = (description: string) =>
  text(description, '2026-11-21T10:15:00.000Z', { format: 'date-time' })

const durationPattern = (digits: string) =>
  `^([0-9]${digits}w)?([0-9]${digits}d)?([0-9]${digits}h)?([0-9]${digits}m)?([0-9]${digits}s)?([0-9]${digits}ms)?$`
/** `parseDuration` reads what this matches, except that a duration is longer than zero. */
export const DURATION_PATTERN = durationPattern('+')
/** Less than a thousand years, whatever the digits. */
export const LIFETIME_PATTERN = durationPattern('{1,4}')
const durationOf = (description: string, example: string, pattern: string) =>
  text(
    `${description} Such as 45s, 10m, 1h30m or 7d; longer than zero.`,
    example,
    { maxLength: 256 },
    accepts({ minLength: 2, pattern }),
  )
export const duration = (description: string, example = '10m') =>
  durationOf(description, example, DURATION_PATTERN)
/** A duration that is kept, which must be less than a thousand years. */
export const lifetime = (description: string, example: string) =>
  durationOf(description, example, LIFETIME_PATTERN)
/** A duration in a reply. */
export const lasts = (description: string, example = '10m') => text(description, example)

const SEGMENT = '([A-Za-z0-9._/@+-]+\\*?|\\*)'
export const SCOPE_PATTERN = `^${SEGMENT}(:${SEGMENT})*$`
export const Scope = text(
  'A scope: backend:resource:permission. The last character of a part may be `*`.',
  'reports:read',
  { maxLength: 256 },
  accepts({ minLength: 1, pattern: SCOPE_PATTERN }),
)
export const scopes = (description: string) => Type.Array(Scope, { maxItems: 64, description })
/** Scopes in a reply. */
export const shownScopes = (description: string) =>
  Type.Array(text('A scope.', 'reports:read'), { description })

/** The form of the names of agents and backends. */
export const NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$'
/** The name of something that exists. */
export const name = (description: string, example: string) =>
  text(description, example, { minLength: 1, maxLength: MAX_NAME_LENGTH })
/** The name of something new. */
export const newName = (description: string, example: string) =>
  text(
    `${description} Letters, digits, \`.\`, \`_\` and \`-\`.`,
    example,
    { minLength: 1, maxLength: MAX_NAME_LENGTH },
    accepts({ pattern: NAME_PATTERN }),
  )
export const flag = (description: string) => Type.Boolean({ description })
export const count = (description: string, example: number) =>
  Type.Integer({ description, examples: [example] })

/** An id of each kind, as an example. */
export const EXAMPLE_ID = {
  credential: 'cred_06dznf1k8c7t5q2v9xw3b4y6zh',
  agent: 'ag_06dzn8q4v2m6x9c1t7p5k3w0hf',
  client: 'agent_06dzn8q4v2m6x9c1t7p5k3w0hf',
  enrollment: 'enr_06dzp2c7h5n1v8k4q6t9x3m0wb',
  audit: 'aud_06dzq5t9w3k7n1c6v4x8m2p0hd',
  request: 'req_06dzr8x2m6q4t1v9k7c5n3w0pb',
  operator: 'op_06dzs4k8v2n6x1c9t5q7m3w0hd',
  session: 'ses_06dzt7n1x5q9v3k6c8m2t4w0pb',
  passkey: 'pk_06dzv2t6k9n3x7q1c5m8v4w0hf',
  run: 'run_06dzw5k9q2v6x1m8t3c7n4p0hb',
}
export const credentialId = (description: string) => text(description, EXAMPLE_ID.credential)
export const agentId = (description: string) => text(description, EXAMPLE_ID.agent)
export const AgentRef = text(
  'Id or name of an agent. A name refers to its current or most recent owner.',
  'ci-build',
  { minLength: 1, maxLength: 128 },
)

export const AUDIENCE = 'sts.amazonaws.com'
export const Audience = text('An audience.', AUDIENCE, { minLength: 1, maxLength: 1024 })
/** Audiences in a reply. */
export const shownAudiences = (description: string) =>
  Type.Array(text('An audience.', AUDIENCE), { description })

const anything = Type.Unknown({ description: 'Any value.' })
/** An object with fields of any name. */
export const free = (description: string, example: object) =>
  Type.Record(Type.String(), anything, { description, examples: [example] })
export const Metadata = Type.Record(Type.String(), anything, {
  maxProperties: MAX_METADATA_KEYS,
  description: 'Free-form facts that the audit records, at most 8 KiB.',
  examples: [{ job: 'build-42' }],
})
export const Params = Type.Record(Type.String(), anything, {
  description: 'Options of this kind of backend; `GET /v1/admin/kinds` has their schema.',
  examples: [{}],
})

export const ACTION_NAMES: string[] = [...ACTIONS]

/** One type or null, written as JSON Schema's list of types: a union would be validated on every reply. */
export const nullable = <T extends TSchema & { type: string }>(schema: T) =>
  Type.Unsafe<Static<T> | null>({ ...schema, type: [schema.type, 'null'] })

const healthReasons = Object.keys(HEALTH_REASONS) as HealthReason[]
/** What each reason means, as one text. */
export const HEALTH_MEANINGS = healthReasons
  .map((reason) => `\`${reason}\`: ${HEALTH_REASONS[reason]}`)
  .join(' ')

export type ErrorCode = keyof typeof PROBLEMS
/** The codes of RFC 6749 §5.2 and its extensions, which `/oauth/*` answers. */
export type OAuthErrorCode = keyof typeof OAUTH_ERRORS

export const ErrorBody = Type.Object(
  {
    error: Type.Object(
      {
        code: oneOf(
          Object.keys(PROBLEMS),
          'What is wrong, for programs. docs/reference/errors.md lists the codes.',
        ),
        message: text('What is wrong, for people.', 'There is no such backend.'),
        request_id: text('Names this request in the log of the server.', EXAMPLE_ID.request),
        options: Type.Optional(
          free('With `confirmation_required`: what a passkey is to sign; empty: there is none.', {}),
        ),
        reason: Type.Optional(
          oneOf(
            Object.keys(HEALTH_REASONS),
            `Why the upstream of a backend could not be used with a new configuration; only for the local host and holders of \`admin:*\`. ${HEALTH_MEANINGS}`,
          ),
        ),
      },
      { description: 'The error.' },
    ),
  },
  { title: 'Error', description: 'Every error outside /oauth/.' },
)

export const OAuthErrorBody = Type.Object(
  {
    error: text(`One of ${Object.keys(OAUTH_ERRORS).join(', ')}.`, 'invalid_client'),
    error_description: Type.Optional(text('What is wrong, for people.', 'The client is not known.')),
    error_uri: Type.Optional(
      text(
        'A page for whoever must act.',
        'https://mayfly.example.com/console/activity?action=token.refused',
      ),
    ),
  },
  { title: 'OAuthError', description: 'Every error under /oauth/ (RFC 6749 §5.2).' },
)

/** Paging of every listing (RFC 8288: the next page is in `Link`). */
export const Page = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      description: 'Size of the page; default 100.',
      examples: [50],
    }),
  ),
  cursor: Type.Optional(
    text(
      'Where the page begins: from the `Link` header, or `next_cursor`, of the previous page.',
      '06dznf1k8c7t5q2v9xw3b4y6zh',
      { minLength: 1, maxLength: 128 },
    ),
  ),
}
/** Those that are given or requested for an agent: `scopeWarnings` in core. */
export const ScopeWarnings = Type.Optional(
  Type.Array(text('A sentence.', 'The scope "shp:x" names no backend: there is none called "shp".'), {
    description: 'Scopes that name no backend, or can never be given; absent: none.',
  }),
)

export const Warnings = Type.Array(text('A sentence.', 'The role may create databases.'), {
  description: 'What the administrator should know; absent: nothing.',
})
