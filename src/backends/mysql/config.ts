import Type, { type Static } from 'typebox'
import { localUserField } from '../fields.ts'
import { addressFields, connectFields, passwordField, tlsFields } from '../server-fields.ts'

/** A dot separates the table in a scope, a backslash escapes in a GRANT, and a slash is none of a directory's name. */
const DATABASE = { minLength: 1, maxLength: 64, pattern: '^[^\\u0000.:/\\\\]+$', description: 'Database.' }

export const config = Type.Object(
  {
    ...addressFields(3306),
    username: Type.String({
      minLength: 1,
      maxLength: 80,
      pattern: '^[^\\u0000]+$',
      description: 'Account that Mayfly logs in as.',
    }),
    ...passwordField,
    ...tlsFields,
    local_user: localUserField(),
    databases: Type.Array(Type.String(DATABASE), {
      minItems: 1,
      maxItems: 64,
      description: 'Databases that are granted. The first one is the default of the clients.',
    }),
    grant: Type.Union([Type.Literal('read-only'), Type.Literal('read-write')], {
      default: 'read-only',
      description: 'The most that a credential may do: read-only or read-write.',
    }),
    ...connectFields,
  },
  {
    additionalProperties: false,
    examples: [{ host: 'db.example.com', username: 'mayfly', password: 'change-me', databases: ['shop'] }],
  },
)

export type Config = Static<typeof config>
