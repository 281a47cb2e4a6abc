import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { addressFields, connectFields, passwordField, tlsFields } from '../server-fields.ts'

const PERSIST =
  'Write users to the ACL file of the server, so that credentials survive its restart. Each time stops the server briefly.'

const example = { host: 'cache.example.com', username: 'mayfly', password: 'change-me' }

export const config = Field.configOf(example, {
  ...addressFields(6379),
  username: Field.text('User that Mayfly logs in as.', {
    minLength: 1,
    maxLength: 128,
    pattern: '^[^\\u0000\\s]+$',
    default: 'default',
  }),
  ...passwordField,
  ...tlsFields,
  local_user: Field.localUser(),
  database: Type.Integer({
    minimum: 0,
    maximum: 1023,
    default: 0,
    description: 'Only 0: every connection begins there, and Redis cannot keep a user out.',
  }),
  persist: Type.Boolean({ default: false, description: PERSIST }),
  ...connectFields,
})

export type Config = Static<typeof config>
