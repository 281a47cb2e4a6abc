import Type, { type Static } from 'typebox'
import { BackendError, guardedField, protectionField, secretField, upstreamField } from '../kind.ts'
import { findStatementFaults } from './statements.ts'

/** A name inside the database: any characters but NUL, which PostgreSQL's protocol cannot carry. */
const nameOf = (description: string) => ({
  minLength: 1,
  maxLength: 63,
  pattern: '^[^\\u0000]+$',
  description,
})
const name = (description: string) => Type.String(nameOf(description))
const hostOf = (description: string) => ({
  minLength: 1,
  maxLength: 253,
  pattern: '^[A-Za-z0-9._:-]+$',
  description,
})
const portNumber = { minimum: 1, maximum: 65_535 }

export const config = Type.Object(
  {
    host: Type.String(upstreamField(hostOf('Address of the server.'))),
    port: Type.Integer(upstreamField({ ...portNumber, default: 5432, description: 'Port of the server.' })),
    // A pooler may keep each of its databases on another server.
    database: Type.String(upstreamField(nameOf('Database to connect to; roles are created from here.'))),
    username: name('Role that Mayfly logs in as.'),
    password: Type.Optional(
      Type.String(
        secretField({ maxLength: 1024, description: 'Its password; leave out for trust or none.' }),
      ),
    ),
    tls: Type.Optional(
      Type.Union(
        [Type.Literal('disable'), Type.Literal('require'), Type.Literal('verify-full')],
        guardedField(
          protectionField({
            description:
              'disable, require (encrypted, certificate not checked) or verify-full. Default: verify-full; disable when local.',
          }),
          'verify-full',
        ),
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
    local: Type.Boolean(
      guardedField(
        protectionField({
          default: false,
          description: 'The server is on this machine or in its own network: permits loopback addresses.',
        }),
        false,
      ),
    ),
    grant: Type.Union([Type.Literal('read-only'), Type.Literal('read-write'), Type.Literal('statements')], {
      default: 'read-only',
      description: 'What a credential may do: read-only, read-write, or your own statements.',
    }),
    databases: Type.Optional(
      Type.Array(name('Database.'), {
        minItems: 1,
        maxItems: 64,
        description: 'Databases that are granted. Default: `database` alone.',
      }),
    ),
    schemas: Type.Array(name('Schema.'), {
      minItems: 1,
      maxItems: 64,
      default: ['public'],
      description: 'Schemas that are granted, in every database.',
    }),
    statements: Type.Optional(
      Type.Array(
        Type.String({ minLength: 1, maxLength: 8192 }),
        // They run as Mayfly's own role, with all that it may do.
        guardedField(
          protectionField({
            minItems: 1,
            maxItems: 32,
            description: 'Own SQL with {{name}} {{password}} {{expiration}} {{scopes}}, run in `database`.',
          }),
        ),
      ),
    ),
    scram_iterations: Type.Optional(
      Type.Integer({
        minimum: 256,
        maximum: 100_000,
        description: 'SCRAM iterations of the passwords; 4096 by default. With fewer, issuing is faster.',
      }),
    ),
    reassign_owned_to: Type.Optional(
      name(
        'Role, without rights of its own, that receives what a credential leaves behind. Without it, that is dropped.',
      ),
    ),
    // Agents send their passwords there.
    connect_host: Type.Optional(Type.String(protectionField(hostOf('Host for agents, where it differs.')))),
    connect_port: Type.Optional(
      Type.Integer(protectionField({ ...portNumber, description: 'Port for agents.' })),
    ),
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
export type Tls = 'disable' | 'require' | 'verify-full'

/** Where nothing is said: verified TLS, except for a server on the same machine. */
export function tlsOf(settings: Config): Tls {
  return settings.tls ?? (settings.local ? 'disable' : 'verify-full')
}

/** RFC 7677 §4 recommends at least 4096. */
const ITERATIONS = 4096

export function iterationsOf({ scram_iterations = ITERATIONS }: Config): number {
  return scram_iterations
}

export function databasesOf(settings: Config): readonly string[] {
  return settings.grant === 'statements' ? [settings.database] : (settings.databases ?? [settings.database])
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  if (settings.grant === 'statements' && settings.statements === undefined) {
    throw new BackendError('misconfigured', '"grant" is "statements", but "statements" is missing.')
  }
  if (settings.grant !== 'statements' && settings.statements !== undefined) {
    throw new BackendError('misconfigured', '"statements" needs "grant": "statements".')
  }
  if (settings.grant === 'statements' && settings.databases !== undefined) {
    throw new BackendError('misconfigured', '"databases" has no effect on your own statements; leave it out.')
  }
  for (const [index, statement] of (settings.statements ?? []).entries()) {
    const fault = findStatementFaults(statement)
    if (fault !== undefined) throw new BackendError('misconfigured', `"statements/${index}" ${fault}.`)
  }
  if (settings.ca !== undefined && tlsOf(settings) !== 'verify-full') {
    throw new BackendError('misconfigured', '"ca" needs "tls": "verify-full".')
  }
}
