import Type from 'typebox'
import * as Field from './fields.ts'
import { requireConfig } from './fields.ts'
import { guardedField, protectionField, upstreamField } from './kind.ts'

/** Fields of the kinds that reach a server by host and port, and give agents an address of it. */

const HOST = { minLength: 1, maxLength: 253, pattern: '^[A-Za-z0-9._:-]+$' }
const PORT = { minimum: 1, maximum: 65_535 }
const TLS =
  'disable, require (encrypted, certificate not checked) or verify-full. Default: verify-full; disable when local.'

export function addressFields(port: number) {
  return {
    host: Field.upstream('Address of the server.', HOST),
    port: Type.Integer(upstreamField({ ...PORT, default: port, description: 'Port of the server.' })),
  }
}

/** Of the login of Mayfly, where a server may have accounts without one. */
export const passwordField = {
  password: Type.Optional(Field.secret('Its password; leave out if it has none.', { maxLength: 1024 })),
}

export const tlsFields = {
  tls: Type.Optional(
    Type.Union(
      [Type.Literal('disable'), Type.Literal('require'), Type.Literal('verify-full')],
      guardedField(protectionField({ description: TLS }), 'verify-full'),
    ),
  ),
  ca: Field.ca('PEM of the certificate authority, for verify-full.'),
  local: Field.local('The server is on this machine or in its own network: permits loopback addresses.'),
}

/** Agents send their passwords there. */
export const connectFields = {
  connect_host: Type.Optional(Field.protection('Host for agents, where it differs.', HOST)),
  connect_port: Type.Optional(Type.Integer(protectionField({ ...PORT, description: 'Port for agents.' }))),
}

export type Tls = 'disable' | 'require' | 'verify-full'

interface TlsSettings {
  readonly tls?: Tls
  readonly ca?: string
  readonly local: boolean
}

/** Where nothing is said: verified TLS, except for a server on the same machine. */
export function tlsOf({ tls, local }: TlsSettings): Tls {
  return tls ?? (local ? 'disable' : 'verify-full')
}

/** Throws `BackendError` (`misconfigured`). */
export function requireTls(settings: TlsSettings): void {
  const isUsed = settings.ca === undefined || tlsOf(settings) === 'verify-full'
  requireConfig(isUsed, '"ca" needs "tls": "verify-full".')
}
