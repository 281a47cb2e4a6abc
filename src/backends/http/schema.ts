import Type, { type Static } from 'typebox'
import {
  Auth,
  Expiry,
  expect,
  Field,
  handle,
  List,
  NAME,
  named,
  pointer,
  type Request,
  request,
  STRICT,
  statuses,
  taken,
  text,
} from './schema-parts.ts'

/** The form of a recipe: a kind as data. `docs/reference/recipe.schema.json` is made from this. */

const Scopes = Type.Object(
  {
    help: text('The grammar in one or two sentences.'),
    forms: Type.Array(
      Type.Object(
        {
          form: text('`<project>:read`: text, and names of parts.', { maxLength: 128 }),
          gives: text(
            'What it gives, as the end of "a credential that may …". `<part>` stands for what its value gives.',
          ),
          sets: Type.Optional(
            Type.Record(Type.String(NAME), Type.Unknown(), { description: 'Variables that this form sets.' }),
          ),
        },
        STRICT,
      ),
      { minItems: 1, maxItems: 16, description: 'The forms of a scope, the most useful one first.' },
    ),
    parts: Type.Optional(
      Type.Record(
        Type.String(NAME),
        Type.Object(
          {
            pattern: Type.Optional(text('Regular expression of the part. Default: `[A-Za-z0-9._@+-]+`.')),
            values: Type.Optional(
              Type.Record(
                Type.String(),
                Type.Object(
                  { gives: text('What the value gives.'), sends: Type.Optional(Type.Unknown()) },
                  STRICT,
                ),
                {
                  description:
                    'The only values; `sends` is what the variable becomes, by default the value itself.',
                },
              ),
            ),
          },
          STRICT,
        ),
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
  },
  STRICT,
)

export const RecipeSchema = Type.Object(
  {
    type: text('Name of the kind.', { pattern: '^[a-z][a-z0-9-]{0,31}$' }),
    title: text('Its title.'),
    source: Type.Array(text('URL of a page.', { pattern: '^https://' }), {
      minItems: 1,
      description: "The vendor's pages that this recipe follows.",
    }),
    base_url: Type.Object(
      {
        default: Type.Optional(
          text('The address, unless the backend has another one.', { pattern: '^https://' }),
        ),
        example: Type.Optional(text('For upstreams without a common address.', { pattern: '^https://' })),
      },
      {
        ...STRICT,
        description:
          'One of both. The fields `base_url`, `local`, `local_user` and `ca` are added to the configuration.',
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
      Type.Object(
        {
          prefix: Type.Optional(Type.Enum(['mf_', 'mf-'], { default: 'mf_' })),
          max_length: Type.Optional(
            Type.Integer({ minimum: 1, description: 'The longest name that the upstream takes.' }),
          ),
          pattern: Type.Optional(text('Regular expression of the names that the upstream takes.')),
        },
        {
          ...STRICT,
          description: 'The variable {name} is the prefix and the 26 characters of the credential id.',
        },
      ),
    ),
    scopes: Scopes,
    limits: Type.Optional(
      Type.Object(
        {
          min_ttl: Type.Optional(text('Such as 1m.')),
          max_ttl: Type.Optional(text('Such as 90d.')),
          why: text('Why, for the administrator.'),
        },
        STRICT,
      ),
    ),
    statuses: Type.Optional(
      Type.Object(
        {
          denied: Type.Optional(statuses('Default: 401 and 403.')),
          unavailable: Type.Optional(statuses('Default: 408, 429 and all from 500 on.')),
        },
        STRICT,
      ),
    ),
    issue: Type.Object(
      {
        requests: Type.Array(
          Type.Object(
            {
              ...request,
              take: Type.Optional(named(taken, 'Variables for the next requests, from the reply.')),
            },
            STRICT,
          ),
          { minItems: 1, maxItems: 4, description: 'In this order. The last reply holds the secret.' },
        ),
        secret: Type.Optional(pointer('Where the one secret is.')),
        fields: Type.Optional(named(taken, 'The parts of the credential, where it has several.')),
        handle,
        expires: Type.Optional(Expiry),
        facts: Type.Optional(named(taken, 'For the audit; nothing secret.')),
      },
      STRICT,
    ),
    revoke: Type.Optional(
      Type.Object(
        {
          ...request,
          expect,
          gone: Type.Optional(statuses('Statuses that mean that it does not exist. Default: 404.')),
        },
        { ...STRICT, description: 'Absent: a credential lasts until the expiry of the upstream.' },
      ),
    ),
    list: Type.Optional(List),
    check: Type.Optional(
      Type.Array(
        Type.Object(
          {
            ...request,
            expect,
          },
          STRICT,
        ),
        { description: 'Requests that change nothing. The first page of `list` is always read.' },
      ),
    ),
    identity: Type.Optional(
      Type.Object(
        { ...request, at: pointer('Where the reply says it.') },
        {
          ...STRICT,
          description:
            'Says whose the login is, where the configuration does not: accounts that another login made are neither found nor ended.',
        },
      ),
    ),
    environment: Type.Optional(
      Type.Record(Type.String({ pattern: '^[A-Z][A-Z0-9_]*$' }), Type.String(), {
        description: 'Variables that the programs of this upstream read.',
      }),
    ),
    privileges: text('The least privileges that the login of Mayfly needs.', { maxLength: 4096 }),
  },
  { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Mayfly recipe', ...STRICT },
)

export type Recipe = Static<typeof RecipeSchema>
export type RecipeRequest = Static<typeof Request>
export type FieldSpec = Static<typeof Field>
export type ListSpec = Static<typeof List>
export type ExpirySpec = Static<typeof Expiry>
