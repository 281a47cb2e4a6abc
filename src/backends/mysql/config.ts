import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { addressFields, connectFields, passwordField, tlsFields } from '../server-fields.ts'

/** A dot separates the table in a scope, a backslash escapes in a GRANT, and a slash is none of a directory's name. */
const DATABASE = { minLength: 1, maxLength: 64, pattern: '^[^\\u0000.:/\\\\]+$', description: 'Database.' }

const example = { host: 'db.example.com', username: 'mayfly', password: 'change-me', databases: ['shop'] }

export const config = Field.configOf(example, {
  ...addressFields(3306),
  username: Field.text('Account that Mayfly logs in as.', {
    minLength: 1,
    maxLength: 80,
    pattern: '^[^\\u0000]+$',
  }),
  ...passwordField,
  ...tlsFields,
  local_user: Field.localUser(),
  databases: Field.list(
    Type.String(DATABASE),
    64,
    'Databases that are granted. The first one is the default of the clients.',
  ),
  grant: Field.choice(
    ['read-only', 'read-write'],
    'The most that a credential may do: read-only or read-write.',
  ),
  ...connectFields,
})

export type Config = Static<typeof config>
