import Type, { type Static, type TProperties } from 'typebox'
import { closed as part } from '../fields.ts'

/** The part of a recipe that says where a credential is used (`domain/use.ts`). */

const NAME = { pattern: '^[a-z][a-z0-9_]{0,39}$' }
const text = (description: string, more: object = {}) =>
  Type.String({ minLength: 1, maxLength: 1024, description, ...more })
const flag = (description: string) => Type.Boolean({ description })
const described = <F extends TProperties>(description: string, fields: F) =>
  Type.Object(fields, { additionalProperties: false, description })

/** `*` alone: every method. */
const METHODS = Type.Array(text('A method.', { pattern: '^(?:\\*|[A-Z][A-Z-]{1,31})$' }), {
  minItems: 1,
  maxItems: 16,
  description: 'Methods, such as GET; `*` alone: every one.',
})

const UseRule = part({
  methods: METHODS,
  paths: Type.Array(
    text(
      'A pattern: `*` is one part of the path or a piece of it, `**` at the end any number of them. {names} are fields and parts of the scope.',
      { pattern: '^/', maxLength: 256 },
    ),
    { minItems: 1, maxItems: 64, description: 'Paths below `origin`.' },
  ),
  slashes: Type.Optional(
    flag('`%2F` and `//` are permitted, as a piece of one part. A slash in a {name} becomes `%2F`.'),
  ),
  caseless: Type.Optional(flag('The upstream does not distinguish upper and lower case.')),
  for: Type.Optional(
    Type.Record(
      Type.String(NAME),
      Type.Array(text('A value as in the scope.'), { minItems: 1, maxItems: 32 }),
      { description: 'Only for scopes whose parts have one of these values.' },
    ),
  ),
})

const UsePlace = described('One of these, with the field of the credential that stands there.', {
  field: Type.Optional(text('A name of `fields` of `issue`; not with `secret`.', NAME)),
  header: Type.Optional(
    text('The value of this header, or what follows its first word.', { pattern: '^[A-Za-z0-9-]+$' }),
  ),
  basic: Type.Optional(Type.Literal(true, { description: 'User or password of Basic authentication.' })),
  query: Type.Optional(text('The value of this query parameter.')),
})

export const Use = part({
  name: text('Name of the use, such as `api` or `git`.', { pattern: '^[a-z][a-z0-9-]{0,31}$' }),
  origin: Type.Optional(text('Its address. Default: `{base_url}`. A template.')),
  places: Type.Array(UsePlace, {
    minItems: 1,
    maxItems: 8,
    description: 'Where programs put the secret.',
  }),
  allow: Type.Array(UseRule, {
    minItems: 1,
    maxItems: 32,
    description: 'Requests that may carry it. What no rule names is refused.',
  }),
  deny: Type.Optional(
    Type.Array(UseRule, {
      maxItems: 16,
      description: 'Refused although `allow` names them: above all paths that make credentials.',
    }),
  ),
})

export type UseSpec = Static<typeof Use>
export type UseRuleSpec = Static<typeof UseRule>
export type UsePlaceSpec = Static<typeof UsePlace>
