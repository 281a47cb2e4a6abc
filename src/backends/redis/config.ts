import Type, { type Static } from 'typebox'
import { localUserField } from '../fields.ts'
import { addressFields, connectFields, passwordField, tlsFields } from '../server-fields.ts'

const PERSIST =
  'Write users to the ACL file of the server, so that credentials survive its restart. Each time stops the server briefly.'

export const config = Type.Object(
  {
    ...addressFields(6379),
    username: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[^\\u0000\\s]+$',
      default: 'default',
      description: 'User that Mayfly logs in as.',
    }),
    ...passwordField,
    ...tlsFields,
    local_user: localUserField(),
    database: Type.Integer({
      minimum: 0,
      maximum: 1023,
      default: 0,
      description: 'Only 0: every connection begins there, and Redis cannot keep a user out.',
    }),
    persist: Type.Boolean({ default: false, description: PERSIST }),
    ...connectFields,
  },
  {
    additionalProperties: false,
    examples: [{ host: 'cache.example.com', username: 'mayfly', password: 'change-me' }],
  },
)

export type Config = Static<typeof config>
