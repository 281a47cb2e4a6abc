import Type, { type Static, type TProperties } from 'typebox'
import { closed as part } from '../fields.ts'
import { Use } from './use-schema.ts'

/** The form of a recipe: a kind as data. `docs/reference/recipe.schema.json` is made from this. */

const flag = (description: string) => Type.Boolean({ description })
const described = <F extends TProperties>(description: string, fields: F) =>
  Type.Object(fields, { additionalProperties: false, description })
const text = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, description, ...more })
const NAME = { pattern: '^[a-z][a-z0-9_]{0,39}$' }
const POINTER = { pattern: '^(?:/(?:[^~/]|~[01])*)+$', maxLength: 256 }
const pointer = (description: string) => text(`${description} A JSON Pointer (RFC 6901).`, POINTER)
const template = (description: string) => text(`${description} A template.`)
const named = (value: ReturnType<typeof text>, description: string) =>
  Type.Record(Type.String(NAME), value, { description })
const statuses = (description: string) =>
  Type.Array(Type.Integer({ minimum: 200, maximum: 599 }), { minItems: 1, maxItems: 32, description })
const taken = text('A JSON Pointer into the reply when it begins with "/", else a template.')

const request = {
  request: text(
    'Method and path, such as `POST /v1/projects/{project}/keys`; each {name} becomes one part of the path.',
    {
      pattern: '^(?:GET|POST|PUT|PATCH|DELETE) /[A-Za-z0-9._~/{}@:,-]*$',
    },
  ),
  query: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: 'Query parameters; one without a value is left out.',
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' }), Type.String(), { description: 'Headers.' }),
  ),
  json: Type.Optional(
    Type.Unknown({
      description:
        'JSON body. Its strings and keys are templates; a string that is one {name} keeps the type of the value. `{$each: …}` is a list with one item per scope, with `$join` one text.',
    }),
  ),
  form: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Form body, in place of `json`.' }),
  ),
  ok: Type.Optional(statuses('Statuses that mean success. Default: all from 200 to 299.')),
  needs: Type.Optional(
    text(
      'What the login of Mayfly must be allowed for this, as the end of a sentence: `the permission Zone Read`.',
    ),
  ),
}

const expect = Type.Optional(
  Type.Array(
    part({
      at: pointer('Where to look in the reply.'),
      is: Type.Optional(Type.Unknown({ description: 'The value, or an item of the list there.' })),
      is_not: Type.Optional(text('Regular expression that the whole text there must not match.')),
      needs: text('What is missing otherwise.'),
    }),
  ),
)

const Request = part(request)

const Field = part({
  description: text('One sentence for forms and help.'),
  type: Type.Optional(
    Type.Enum(['text', 'integer', 'boolean', 'list'], {
      default: 'text',
      description: 'What it holds; a list is of texts.',
    }),
  ),
  secret: Type.Optional(flag('Sealed at rest and never shown. Only `auth` may use it.')),
  upstream: Type.Optional(flag('Selects the upstream, or the part of it.')),
  protection: Type.Optional(flag('Protects secrets; a change requires them again.')),
  guarded: Type.Optional(
    flag('Only the local host and holders of admin:* may set it to anything but its default.'),
  ),
  choices: Type.Optional(
    Type.Array(text('A value.'), { minItems: 1, description: 'The values that it may have.' }),
  ),
  form: Type.Optional(
    text('For a list: the form of each item, such as `<project>/<config>`; its names are parts of scopes.'),
  ),
  pattern: Type.Optional(text('Regular expression that the whole value must match.')),
  max_length: Type.Optional(Type.Integer({ minimum: 1, maximum: 32_768, default: 256 })),
  default: Type.Optional(Type.Unknown({ description: 'The value where none is given.' })),
  optional: Type.Optional(flag('May be left out.')),
  example: Type.Optional(
    Type.Unknown({ description: 'A value for the documentation; every required field has one.' }),
  ),
})

const Auth = described('How Mayfly logs in: exactly one of these.', {
  bearer: Type.Optional(template('`Authorization: Bearer …` (RFC 6750).')),
  basic: Type.Optional(described('RFC 7617.', { username: Type.String(), password: Type.String() })),
  header: Type.Optional(
    part({
      name: text('Name of the header.', { pattern: '^[A-Za-z0-9-]+$' }),
      value: template('Its value.'),
    }),
  ),
  login: Type.Optional(
    described('A request that exchanges a login for a bearer token.', {
      ...request,
      token: pointer('Where the token is that becomes the bearer token.'),
      expires_in: Type.Optional(pointer('Its lifetime in seconds.')),
    }),
  ),
  oauth: Type.Optional(
    described('OAuth client credentials (RFC 6749 §4.4).', {
      request: request.request,
      client_id: template('The client.'),
      client_secret: template('Its secret.'),
      scope: Type.Optional(template('Scopes, separated by spaces.')),
      send: Type.Optional(
        Type.Enum(['basic', 'body'], {
          default: 'basic',
          description: 'How the client logs in (RFC 6749 §2.3.1).',
        }),
      ),
    }),
  ),
  jwt: Type.Optional(
    described('A signed JWT as bearer token (RFC 7523 §2.2).', {
      algorithm: Type.Enum(['RS256', 'ES256', 'EdDSA']),
      key: template('Private key, PKCS #8 as PEM.'),
      key_id: Type.Optional(template('`kid` of the header.')),
      lifetime: text('Until `exp`, such as 5m.'),
      claims: Type.Record(Type.String(), Type.Unknown(), {
        description: 'Further claims; `iat` and `exp` are set.',
      }),
    }),
  ),
})

const handle = Type.Optional(named(taken, 'What `revoke` needs besides the name; each becomes a variable.'))
const Expiry = part({
  at: pointer('Where the expiry is in the reply; null and nothing mean that there is none.'),
  as: Type.Enum(['iso', 'date', 'seconds', 'milliseconds']),
})

const List = described('Lists the accounts. {name} is the name looked for, if there is one.', {
  ...request,
  items: Type.Optional(pointer('Where the list is in the reply. Default: the reply is the list.')),
  name: pointer('Where the name is in an item.'),
  unless: Type.Optional(
    pointer('Where an item says, with anything but null or false, that it has ended already.'),
  ),
  handle,
  expires: Type.Optional(Expiry),
  next: Type.Optional(
    described('How pages follow each other: by cursor or by number. Absent: there is one.', {
      cursor: Type.Optional(
        pointer('Where the cursor of the next page is in the reply; it becomes {after}.'),
      ),
      while: Type.Optional(pointer('Where the reply says true while there are more pages.')),
      size: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 1000,
          description: 'Items of a full page, for {page} from 1 on.',
        }),
      ),
      capped: Type.Optional(
        flag('The server may make pages shorter than asked for: only an empty one is the last.'),
      ),
    }),
  ),
})

const Scopes = part({
  help: text('The grammar in one or two sentences.'),
  forms: Type.Array(
    part({
      form: text('`<project>:read`: text, and names of parts.', { maxLength: 128 }),
      gives: text(
        'What it gives, as the end of "a credential that may …". `<part>` stands for what its value gives.',
      ),
      sets: Type.Optional(
        Type.Record(Type.String(NAME), Type.Unknown(), { description: 'Variables that this form sets.' }),
      ),
    }),
    { minItems: 1, maxItems: 16, description: 'The forms of a scope, the most useful one first.' },
  ),
  parts: Type.Optional(
    Type.Record(
      Type.String(NAME),
      part({
        pattern: Type.Optional(text('Regular expression of the part. Default: `[A-Za-z0-9._@+-]+`.')),
        values: Type.Optional(
          Type.Record(
            Type.String(),
            part({ gives: text('What the value gives.'), sends: Type.Optional(Type.Unknown()) }),
            {
              description:
                'The only values; `sends` is what the variable becomes, by default the value itself.',
            },
          ),
        ),
      }),
      { description: 'The named parts of the forms. Each becomes a variable of the templates.' },
    ),
  ),
  most: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 64,
      default: 1,
      description: 'How many scopes one credential can have.',
    }),
  ),
  same: Type.Optional(
    Type.Array(text('A part.'), {
      description:
        'Parts that all scopes of a credential must agree in. The other ones become lists if `most` is over 1.',
    }),
  ),
  places: Type.Optional(text('The list field whose items say where credentials may be made.', NAME)),
})

export const RecipeSchema = Type.Object(
  {
    type: text('Name of the kind.', { pattern: '^[a-z][a-z0-9-]{0,31}$' }),
    title: text('Its title.'),
    source: Type.Array(text('URL of a page.', { pattern: '^https://' }), {
      minItems: 1,
      description: "The vendor's pages that this recipe follows.",
    }),
    base_url: described(
      'One of both. The fields `base_url`, `local`, `local_user` and `ca` are added to the configuration.',
      {
        default: Type.Optional(
          text('The address, unless the backend has another one.', { pattern: '^https://' }),
        ),
        example: Type.Optional(text('For upstreams without a common address.', { pattern: '^https://' })),
      },
    ),
    service_accounts: Type.Optional(
      Type.Array(text('Name of the account.', { pattern: '^[a-z_][a-z0-9_-]{0,31}$' }), {
        maxItems: 8,
        description:
          'Accounts that packages of the upstream make for it: on a loopback address without TLS they may get the secrets.',
      }),
    ),
    fields: Type.Record(Type.String(NAME), Field, {
      description: 'The configuration. Each field is a variable of the templates.',
    }),
    auth: Auth,
    headers: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Za-z0-9-]{1,64}$' }), Type.String(), {
        description: 'Headers of every request.',
      }),
    ),
    naming: Type.Optional(
      described('The variable {name} is the prefix and the 26 characters of the credential id.', {
        prefix: Type.Optional(Type.Enum(['mf_', 'mf-'], { default: 'mf_' })),
        max_length: Type.Optional(
          Type.Integer({ minimum: 1, description: 'The longest name that the upstream takes.' }),
        ),
        pattern: Type.Optional(text('Regular expression of the names that the upstream takes.')),
      }),
    ),
    scopes: Scopes,
    limits: Type.Optional(
      part({
        min_ttl: Type.Optional(text('Such as 1m.')),
        max_ttl: Type.Optional(text('Such as 90d.')),
        why: text('Why, for the administrator.'),
      }),
    ),
    statuses: Type.Optional(
      part({
        denied: Type.Optional(statuses('Default: 401 and 403.')),
        unavailable: Type.Optional(statuses('Default: 408, 429 and all from 500 on.')),
      }),
    ),
    issue: part({
      requests: Type.Array(
        part({
          ...request,
          take: Type.Optional(named(taken, 'Variables for the next requests, from the reply.')),
        }),
        { minItems: 1, maxItems: 4, description: 'In this order. The last reply holds the secret.' },
      ),
      secret: Type.Optional(pointer('Where the one secret is.')),
      fields: Type.Optional(named(taken, 'The parts of the credential, where it has several.')),
      handle,
      expires: Type.Optional(Expiry),
      facts: Type.Optional(named(taken, 'For the audit; nothing secret.')),
    }),
    revoke: Type.Optional(
      described('Absent: a credential lasts until the expiry of the upstream.', {
        ...request,
        expect,
        gone: Type.Optional(statuses('Statuses that mean that it does not exist. Default: 404.')),
      }),
    ),
    list: Type.Optional(List),
    check: Type.Optional(
      Type.Array(
        part({
          ...request,
          expect,
        }),
        { description: 'Requests that change nothing. The first page of `list` is always read.' },
      ),
    ),
    identity: Type.Optional(
      described(
        'Says whose the login is, where the configuration does not: accounts that another login made are neither found nor ended.',
        { ...request, at: pointer('Where the reply says it.') },
      ),
    ),
    environment: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }), Type.String(), {
        description: 'Variables that the programs of this upstream read.',
      }),
    ),
    uses: Type.Optional(
      Type.Array(Use, {
        minItems: 1,
        maxItems: 8,
        description: 'Where `mayfly proxy` may put a credential of this kind into requests. Absent: nowhere.',
      }),
    ),
    privileges: text('The least privileges that the login of Mayfly needs.', { maxLength: 4096 }),
  },
  {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Mayfly recipe',
    additionalProperties: false,
  },
)

export type Recipe = Static<typeof RecipeSchema>
export type RecipeRequest = Static<typeof Request>
export type FieldSpec = Static<typeof Field>
export type ListSpec = Static<typeof List>
export type ExpirySpec = Static<typeof Expiry>
