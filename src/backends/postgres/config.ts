import Type, { type Static } from 'typebox'
import { BackendError, guardedField, protectionField, secretField, upstreamField } from '../kind.ts'
import { findStatementFaults } from './statements.ts'

/** A name inside the database: any characters but NUL, which PostgreSQL's protocol cannot carry. */
const NAME = { minLength: 1, maxLength: 63, pattern: '^[^\\u0000]+$' }
const HOST = { minLength: 1, maxLength: 253, pattern: '^[A-Za-z0-9._:-]+$' }
const PORT = { minimum: 1, maximum: 65_535 }

const TLS = {
  description:
    'disable, require (encrypted, certificate not checked) or verify-full. Default: verify-full; disable when local.',
}
const LOCAL = {
  default: false,
  description: 'The server is on this machine or in its own network: permits loopback addresses.',
}
const STATEMENTS = {
  minItems: 1,
  maxItems: 32,
  description: 'Own SQL with {{name}} {{password}} {{expiration}} {{scopes}}, run in `database`.',
}
const REASSIGN =
  'Role, without rights of its own, that receives what a credential leaves behind. Without it, that is dropped.'

export const config = Type.Object(
  {
    host: Type.String(upstreamField({ ...HOST, description: 'Address of the server.' })),
    port: Type.Integer(upstreamField({ ...PORT, default: 5432, description: 'Port of the server.' })),
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
    tls: Type.Optional(
      Type.Union(
        [Type.Literal('disable'), Type.Literal('require'), Type.Literal('verify-full')],
        guardedField(protectionField(TLS), 'verify-full'),
      ),
    ),
    ca: Type.Optional(
      Type.String(
        protectionField({
          maxLength: 32_768,
          description: 'PEM of the certificate authority, for verify-full.',
        }),
      ),
    ),
    local: Type.Boolean(guardedField(protectionField(LOCAL), false)),
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
    // Agents send their passwords there.
    connect_host: Type.Optional(
      Type.String(protectionField({ ...HOST, description: 'Host for agents, where it differs.' })),
    ),
    connect_port: Type.Optional(Type.Integer(protectionField({ ...PORT, description: 'Port for agents.' }))),
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

/** Where nothing is said: verified TLS, except for a server on the same machine. */
export function tlsOf({ tls, local }: Config): NonNullable<Config['tls']> {
  return tls ?? (local ? 'disable' : 'verify-full')
}

export function databasesOf({ grant, database, databases }: Config): readonly string[] {
  return grant === 'statements' ? [database] : (databases ?? [database])
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { grant, databases, statements, ca } = settings
  const require = (condition: boolean, message: string) => {
    if (!condition) throw new BackendError('misconfigured', message)
  }
  if (grant === 'statements') {
    require(statements !== undefined, '"grant" is "statements", but "statements" is missing.')
    require(databases === undefined, '"databases" has no effect on your own statements; leave it out.')
  } else {
    require(statements === undefined, '"statements" needs "grant": "statements".')
  }
  for (const [index, statement] of (statements ?? []).entries()) {
    const fault = findStatementFaults(statement)
    require(fault === undefined, `"statements/${index}" ${fault}.`)
  }
  require(ca === undefined || tlsOf(settings) === 'verify-full', '"ca" needs "tls": "verify-full".')
}
