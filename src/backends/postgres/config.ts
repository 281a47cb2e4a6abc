import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig } from '../fields.ts'
import { guardedField, protectionField } from '../kind.ts'
import { addressFields, connectFields, requireTls, tlsFields } from '../server-fields.ts'
import { findStatementFaults } from './statements.ts'

/** A name inside the database: any characters but NUL, which PostgreSQL's protocol cannot carry. */
const NAME = { minLength: 1, maxLength: 63, pattern: '^[^\\u0000]+$' }

const STATEMENTS = {
  minItems: 1,
  maxItems: 32,
  description: 'Own SQL with {{name}} {{password}} {{expiration}} {{scopes}}, run in `database`.',
}
const REASSIGN =
  'Role, without rights of its own, that receives what a credential leaves behind. Without it, that is dropped.'

const example = {
  host: 'db.example.com',
  database: 'shop',
  username: 'mayfly',
  password: 'change-me',
  tls: 'verify-full',
}

export const config = Field.configOf(example, {
  ...addressFields(5432),
  // A pooler may keep each of its databases on another server.
  database: Field.upstream('Database to connect to; roles are created from here.', NAME),
  username: Field.text('Role that Mayfly logs in as.', NAME),
  password: Type.Optional(Field.secret('Its password; leave out for trust or none.', { maxLength: 1024 })),
  ...tlsFields,
  grant: Field.choice(
    ['read-only', 'read-write', 'statements'],
    'What a credential may do: read-only, read-write, or your own statements.',
  ),
  databases: Type.Optional(
    Field.list(Field.text('Database.', NAME), 64, 'Databases that are granted. Default: `database` alone.'),
  ),
  schemas: Field.list(Field.text('Schema.', NAME), 64, 'Schemas that are granted, in every database.', {
    default: ['public'],
  }),
  // They run as Mayfly's own role, with all that it may do.
  statements: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 8192 }), guardedField(protectionField(STATEMENTS))),
  ),
  scram_iterations: Type.Optional(
    Type.Integer({
      minimum: 256,
      maximum: 100_000,
      description: 'SCRAM iterations of the passwords; 4096 by default. With fewer, issuing is faster.',
    }),
  ),
  reassign_owned_to: Type.Optional(Field.text(REASSIGN, NAME)),
  ...connectFields,
})

export type Config = Static<typeof config>

export function databasesOf({ grant, database, databases }: Config): readonly string[] {
  return grant === 'statements' ? [database] : (databases ?? [database])
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { grant, databases, statements } = settings
  if (grant === 'statements') {
    requireConfig(statements !== undefined, '"grant" is "statements", but "statements" is missing.')
    requireConfig(databases === undefined, '"databases" has no effect on your own statements; leave it out.')
  } else {
    requireConfig(statements === undefined, '"statements" needs "grant": "statements".')
  }
  for (const [index, statement] of (statements ?? []).entries()) {
    const fault = findStatementFaults(statement)
    requireConfig(fault === undefined, `"statements/${index}" ${fault}.`)
  }
  requireTls(settings)
}
