import Type, { type Static } from 'typebox'
import { BackendError, guardedField, protectionField, secretField, upstreamField } from '../kind.ts'

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
const PERSIST =
  'Write users to the ACL file of the server, so that credentials survive its restart. Each time stops the server briefly.'

export const config = Type.Object(
  {
    host: Type.String(upstreamField({ ...HOST, description: 'Address of the server.' })),
    port: Type.Integer(upstreamField({ ...PORT, default: 6379, description: 'Port of the server.' })),
    username: Type.String({
      minLength: 1,
      maxLength: 128,
      pattern: '^[^\\u0000\\s]+$',
      default: 'default',
      description: 'User that Mayfly logs in as.',
    }),
    password: Type.Optional(
      Type.String(secretField({ maxLength: 1024, description: 'Its password; leave out if it has none.' })),
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
    database: Type.Integer({
      minimum: 0,
      maximum: 1023,
      default: 0,
      description: 'Number of the database that credentials use.',
    }),
    persist: Type.Boolean({ default: false, description: PERSIST }),
    // Agents send their passwords there.
    connect_host: Type.Optional(
      Type.String(protectionField({ ...HOST, description: 'Host for agents, where it differs.' })),
    ),
    connect_port: Type.Optional(Type.Integer(protectionField({ ...PORT, description: 'Port for agents.' }))),
  },
  {
    additionalProperties: false,
    examples: [{ host: 'cache.example.com', username: 'mayfly', password: 'change-me' }],
  },
)

export type Config = Static<typeof config>

/** Where nothing is said: verified TLS, except for a server on the same machine. */
export function tlsOf({ tls, local }: Config): NonNullable<Config['tls']> {
  return tls ?? (local ? 'disable' : 'verify-full')
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  if (settings.ca !== undefined && tlsOf(settings) !== 'verify-full') {
    throw new BackendError('misconfigured', '"ca" needs "tls": "verify-full".')
  }
}
