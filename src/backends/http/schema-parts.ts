import Type from 'typebox'

/** Parts of the form of a recipe: fields, requests, logins and lists. */

export const STRICT = { additionalProperties: false }
export const text = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, description, ...more })
export const NAME = { pattern: '^[a-z][a-z0-9_]{0,39}$' }
const POINTER = { pattern: '^(?:/(?:[^~/]|~[01])*)+$', maxLength: 256 }
export const pointer = (description: string) => text(`${description} A JSON Pointer (RFC 6901).`, POINTER)
const template = (description: string) => text(`${description} A template.`)
export const named = (value: ReturnType<typeof text>, description: string) =>
  Type.Record(Type.String(NAME), value, { description })
export const statuses = (description: string) =>
  Type.Array(Type.Integer({ minimum: 200, maximum: 599 }), { minItems: 1, maxItems: 32, description })
export const taken = text('A JSON Pointer into the reply when it begins with "/", else a template.')

export const request = {
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

export const expect = Type.Optional(
  Type.Array(
    Type.Object(
      {
        at: pointer('Where to look in the reply.'),
        is: Type.Optional(Type.Unknown({ description: 'The value, or an item of the list there.' })),
        is_not: Type.Optional(text('Regular expression that the whole text there must not match.')),
        needs: text('What is missing otherwise.'),
      },
      STRICT,
    ),
  ),
)

export const Request = Type.Object(request, STRICT)

export const Field = Type.Object(
  {
    description: text('One sentence for forms and help.'),
    type: Type.Optional(
      Type.Enum(['text', 'integer', 'boolean', 'list'], {
        default: 'text',
        description: 'What it holds; a list is of texts.',
      }),
    ),
    secret: Type.Optional(
      Type.Boolean({ description: 'Sealed at rest and never shown. Only `auth` may use it.' }),
    ),
    upstream: Type.Optional(Type.Boolean({ description: 'Selects the upstream, or the part of it.' })),
    protection: Type.Optional(
      Type.Boolean({ description: 'Protects secrets; a change requires them again.' }),
    ),
    guarded: Type.Optional(
      Type.Boolean({
        description: 'Only the local host and holders of admin:* may set it to anything but its default.',
      }),
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
    optional: Type.Optional(Type.Boolean({ description: 'May be left out.' })),
    example: Type.Optional(
      Type.Unknown({ description: 'A value for the documentation; every required field has one.' }),
    ),
  },
  STRICT,
)

export const Auth = Type.Object(
  {
    bearer: Type.Optional(template('`Authorization: Bearer …` (RFC 6750).')),
    basic: Type.Optional(
      Type.Object(
        { username: Type.String(), password: Type.String() },
        { ...STRICT, description: 'RFC 7617.' },
      ),
    ),
    header: Type.Optional(
      Type.Object(
        { name: text('Name of the header.', { pattern: '^[A-Za-z0-9-]+$' }), value: template('Its value.') },
        STRICT,
      ),
    ),
    login: Type.Optional(
      Type.Object(
        {
          ...request,
          token: pointer('Where the token is that becomes the bearer token.'),
          expires_in: Type.Optional(pointer('Its lifetime in seconds.')),
        },
        { ...STRICT, description: 'A request that exchanges a login for a bearer token.' },
      ),
    ),
    oauth: Type.Optional(
      Type.Object(
        {
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
        },
        { ...STRICT, description: 'OAuth client credentials (RFC 6749 §4.4).' },
      ),
    ),
    jwt: Type.Optional(
      Type.Object(
        {
          algorithm: Type.Enum(['RS256', 'ES256', 'EdDSA']),
          key: template('Private key, PKCS #8 as PEM.'),
          key_id: Type.Optional(template('`kid` of the header.')),
          lifetime: text('Until `exp`, such as 5m.'),
          claims: Type.Record(Type.String(), Type.Unknown(), {
            description: 'Further claims; `iat` and `exp` are set.',
          }),
        },
        { ...STRICT, description: 'A signed JWT as bearer token (RFC 7523 §2.2).' },
      ),
    ),
  },
  { ...STRICT, description: 'How Mayfly logs in: exactly one of these.' },
)

export const handle = Type.Optional(
  named(taken, 'What `revoke` needs besides the name; each becomes a variable.'),
)
export const Expiry = Type.Object(
  {
    at: pointer('Where the expiry is in the reply; null and nothing mean that there is none.'),
    as: Type.Enum(['iso', 'date', 'seconds', 'milliseconds']),
  },
  STRICT,
)

export const List = Type.Object(
  {
    ...request,
    items: Type.Optional(pointer('Where the list is in the reply. Default: the reply is the list.')),
    name: pointer('Where the name is in an item.'),
    unless: Type.Optional(
      pointer('Where an item says, with anything but null or false, that it has ended already.'),
    ),
    handle,
    expires: Type.Optional(Expiry),
    next: Type.Optional(
      Type.Object(
        {
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
            Type.Boolean({
              description: 'The server may make pages shorter than asked for: only an empty one is the last.',
            }),
          ),
        },
        {
          ...STRICT,
          description: 'How pages follow each other: by cursor or by number. Absent: there is one.',
        },
      ),
    ),
  },
  { ...STRICT, description: 'Lists the accounts. {name} is the name looked for, if there is one.' },
)
