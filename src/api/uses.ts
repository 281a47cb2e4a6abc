import { type TProperties, Type } from 'typebox'
import * as Field from './shared.ts'

/** Where and how a credential is used (`domain/use.ts`): with an issue that asks for it, and as an administrator names it. */
const closed = <F extends TProperties>(title: string, fields: F, description?: string) =>
  Type.Object(fields, { additionalProperties: false, title, ...(description && { description }) })

/** What an administrator may name. A reply also has what the kind says: as many rules again, and a use for each of its hosts. */
const MAX_RULES = 256
const MAX_USES = 16
const MAX_PLACES = 16
const MAX_SERVICES = 64
const MAX_ACCOUNTS = 16
const MAX_RULES_IN_REPLY = 2 * MAX_RULES
const MAX_USES_IN_REPLY = 64 + MAX_USES
const MAX_SERVICES_OF_PLACE = 2 * MAX_SERVICES
/** As the configurations of backends take it. */
const MAX_CA_LENGTH = 32_768

const field = Type.Optional(
  Field.text('Which field of the credential; absent: its one value.', 'password', {
    minLength: 1,
    maxLength: 64,
  }),
)
const named = (description: string, example: string) =>
  Field.text(description, example, { minLength: 1, maxLength: 64 })
const signingNames = (description: string, maxItems = MAX_SERVICES_OF_PLACE) =>
  Type.Array(Field.text('A signing name of AWS.', 's3', { minLength: 1, maxLength: 64 }), {
    maxItems,
    description,
  })
const placed = <K extends string, F extends TProperties>(where: K, description: string, fields: F) =>
  Type.Object(
    { in: Type.Literal(where, { description, examples: [where] }), field, ...fields },
    { additionalProperties: false },
  )

export const Place = Type.Union(
  [
    placed('header', 'The whole value of a header, or what follows its first word.', {
      name: named('Name of the header.', 'authorization'),
    }),
    placed('basic', 'The user or the password of Basic authentication.', {}),
    placed('query', 'The whole value of a query parameter.', {
      name: named('Name of the parameter.', 'key'),
    }),
    placed('path', 'A part of a path segment.', {}),
    placed('body', 'The whole value of a field of a form, or of a top-level string of a JSON object.', {
      name: named('Name of the field.', 'client_secret'),
      max_bytes: Type.Integer({
        minimum: 1,
        maximum: 1_048_576,
        description: 'The longest body that it may stand in.',
        examples: [65_536],
      }),
    }),
    placed('sigv4', 'AWS Signature Version 4: the request is signed anew. `field` is the secret key.', {
      key_id: named('The field with the id of the key.', 'access_key_id'),
      token: Type.Optional(named('The field with the token of the session.', 'session_token')),
      allow: Type.Optional(signingNames('The only services; absent: all that are not denied.')),
      deny: signingNames('Services that are refused.'),
    }),
  ],
  { title: 'Place', description: 'Where the secret may stand in a request.' },
)

const METHOD_PATTERN = "^(\\*|[A-Z][A-Z0-9!#$%&'*+.^_`|~-]{0,31})$"
const rule = {
  methods: Type.Array(
    Field.text(
      'A method; `*` alone: every one.',
      'GET',
      { maxLength: 32 },
      Field.accepts({ pattern: METHOD_PATTERN }),
    ),
    { minItems: 1, maxItems: 32, description: 'The methods.' },
  ),
  path: Field.text(
    'A pattern of the path: `*` stands for one segment or a part of one, `**` as the last segment for any number of them.',
    '/repos/acme/shop/**',
    { maxLength: 512 },
    Field.accepts({ minLength: 1, pattern: '^/' }),
  ),
  slashes: Type.Optional(Field.flag('`%2F` and `//` are permitted, as part of one segment.')),
  caseless: Type.Optional(
    Field.flag('Of `allow`: upper and lower case are the same upstream. A `deny` is always compared so.'),
  ),
}
export const Rule = closed('UseRule', {
  ...rule,
  named: Type.Optional(Field.flag('An administrator named it: it is looked at before those of the kind.')),
})
const rulesOf = <S extends typeof Rule>(one: S, description: string) =>
  Type.Array(one, { maxItems: MAX_RULES_IN_REPLY, description })

const name = named('Name of this use, among those of the backend.', 'api')
const local = 'The upstream is on this machine or in its own network: permits loopback and private addresses.'
const ca = Type.Optional(
  Field.text(
    'PEM of the authorities to trust in place of those of the system.',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n',
    { maxLength: MAX_CA_LENGTH },
  ),
)
const accounts = Type.Optional(
  Type.Array(Field.text('Name or number of an account.', 'www-data', { minLength: 1, maxLength: 32 }), {
    maxItems: MAX_ACCOUNTS,
    description:
      'Of `local`: accounts that may listen on a loopback address without TLS, besides root and the one of the proxy.',
  }),
)
const origin = Field.text(
  'Scheme, host and port, where that is not the one of the scheme. `*.` at the beginning of the host of a `sigv4` use stands for any labels.',
  'https://api.github.com',
  { maxLength: 300 },
  Field.accepts({ minLength: 1, pattern: '^https?://' }),
)
const http = {
  protocol: Type.Literal('http', { description: 'HTTP.', examples: ['http'] }),
  name,
  origin,
  ca,
  accounts,
  places: Type.Array(Place, { maxItems: MAX_PLACES, description: 'Where the secret may stand.' }),
}
const ALLOW = 'What may be called with the secret; what no rule names is refused.'
const DENY = 'Refused although `allow` names it.'

export const HttpUse = closed('HttpUse', {
  ...http,
  local: Field.flag(local),
  allow: rulesOf(Rule, ALLOW),
  deny: rulesOf(Rule, DENY),
})

export const DatabaseUse = closed('DatabaseUse', {
  protocol: Type.Union([Type.Literal('postgres'), Type.Literal('mysql'), Type.Literal('redis')], {
    description: 'What is spoken there.',
    examples: ['postgres'],
  }),
  name,
  host: Field.text('Where it listens.', 'db.example.com'),
  port: Field.count('Its port.', 5432),
  local: Field.flag(local),
  tls: Type.Union([Type.Literal('disable'), Type.Literal('require'), Type.Literal('verify-full')], {
    description: 'As the backend connects: `require` encrypts without verifying.',
    examples: ['verify-full'],
  }),
  ca,
  accounts,
  databases: Type.Optional(
    Type.Array(Field.text('A database.', 'shop'), {
      description: 'The only databases that a client may name; absent: any that the credential opens.',
    }),
  ),
})

/** In the reply to an issue that asks for them. */
export const Use = Type.Union([HttpUse, DatabaseUse], {
  title: 'Use',
  description: 'Where and how the credential is used.',
})

export const WithUses = Type.Optional(
  Field.flag('true: the reply says where and how the credential is used, as `mayfly proxy` needs it.'),
)
export const Uses = Type.Optional(
  Type.Array(Use, {
    maxItems: MAX_USES_IN_REPLY,
    description: 'Where and how it is used, if the request asked for `uses`; empty: its kind does not say.',
  }),
)

const ofUse = Type.Optional(named('Name of the use that it is for; absent: all.', 'api'))
const NamedRule = Type.Object({ ...rule, use: ofUse }, { additionalProperties: false })

/** Of a backend, beside its configuration. */
export const UseRules = Type.Object(
  {
    uses: Type.Optional(
      Type.Array(
        Type.Object(
          {
            ...http,
            local: Type.Optional(Field.flag(`${local} Default: false.`)),
            allow: Type.Array(Type.Object(rule, { additionalProperties: false }), {
              maxItems: MAX_RULES,
              description: ALLOW,
            }),
            deny: Type.Optional(
              Type.Array(Type.Object(rule, { additionalProperties: false }), {
                maxItems: MAX_RULES,
                description: DENY,
              }),
            ),
          },
          { additionalProperties: false },
        ),
        { maxItems: MAX_USES, description: 'Uses that the kind cannot know.' },
      ),
    ),
    allow: Type.Optional(
      Type.Array(NamedRule, {
        maxItems: MAX_RULES,
        description: 'Permitted, also where the kind denies it.',
      }),
    ),
    deny: Type.Optional(
      Type.Array(NamedRule, { maxItems: MAX_RULES, description: 'Refused, whatever permits it.' }),
    ),
    services: Type.Optional(
      signingNames('Services of AWS that are permitted although the kind denies them.', MAX_SERVICES),
    ),
  },
  {
    additionalProperties: false,
    title: 'UseRules',
    description: 'Where and how its credentials are used, beside what its kind says.',
  },
)
