import Type, { type Static } from 'typebox'
import { requireConfig } from '../fields.ts'
import { guardedField, protectionField, secretField, upstreamField } from '../kind.ts'
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

export const config = Type.Object(
  {
    ...addressFields(5432),
    // A pooler may keep each of its databases on another server.
    database: Type.String(
      upstreamField({ ...NAME, description: 'Database to connect to; roles are created from here.' }),
    ),
    username: Type.String({ ...NAME, description: 'Role that Mayfly logs in as.' }),
    password: Type.Optional(
      Type.String(
        secretField({ maxLength: 1024, description: 'Its password; leave out for trust or none.' }),
      ),
    ),
    ...tlsFields,
    grant: Type.Union([Type.Literal('read-only'), Type.Literal('read-write'), Type.Literal('statements')], {
      default: 'read-only',
      description: 'What a credential may do: read-only, read-write, or your own statements.',
    }),
    databases: Type.Optional(
      Type.Array(Type.String({ ...NAME, description: 'Database.' }), {
        minItems: 1,
        maxItems: 64,
        description: 'Databases that are granted. Default: `database` alone.',
      }),
    ),
    schemas: Type.Array(Type.String({ ...NAME, description: 'Schema.' }), {
      minItems: 1,
      maxItems: 64,
      default: ['public'],
      description: 'Schemas that are granted, in every database.',
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
    reassign_owned_to: Type.Optional(Type.String({ ...NAME, description: REASSIGN })),
    ...connectFields,
  },
  {
    additionalProperties: false,
    examples: [
      {
        host: 'db.example.com',
        database: 'shop',
        username: 'mayfly',
        password: 'change-me',
        tls: 'verify-full',
      },
    ],
  },
)

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
