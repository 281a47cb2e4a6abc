import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig } from '../fields.ts'

const URL_PATTERN = '^mqtts?://[A-Za-z0-9._:\\[\\]-]+$'

const example = { url: 'mqtts://mqtt.example.com:8883', username: 'mayfly', password: 'change-me' }

export const config = Field.configOf(example, {
  url: Field.upstream('Address of the broker, mqtts://host:8883.', { pattern: URL_PATTERN, maxLength: 1024 }),
  username: Field.text(
    'Client that Mayfly logs in as; it has a role that may use the dynamic security plugin.',
    {
      minLength: 1,
      maxLength: 255,
      pattern: '^[^\\u0000-\\u001f]+$',
    },
  ),
  password: Field.secret('Its password.', { minLength: 1, maxLength: 1024 }),
  ca: Field.ca('PEM of the certificate authority of the broker.'),
  local: Field.local(
    'The broker is on this machine or in its own network: permits loopback addresses and mqtt://.',
  ),
  local_user: Field.localUser(),
  // Agents send their passwords there.
  connect_url: Type.Optional(
    Field.protection('Address for agents, where it differs.', { pattern: URL_PATTERN, maxLength: 1024 }),
  ),
})

export type Config = Static<typeof config>

export interface Address {
  readonly scheme: string
  readonly host: string
  readonly port: number
}

/** https://github.com/mqtt/mqtt.org/wiki/URI-Scheme: 1883, with TLS 8883. */
export function addressOf(url: string): Address {
  const { protocol, hostname, port } = new URL(url)
  const scheme = protocol.slice(0, -1)
  const host = hostname.replace(/^\[|\]$/g, '')
  return { scheme, host, port: port === '' ? (scheme === 'mqtts' ? 8883 : 1883) : Number(port) }
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent({ url, connect_url, local, ca }: Config): void {
  requireConfig(URL.canParse(url), '"url" is not a URL.')
  requireConfig(connect_url === undefined || URL.canParse(connect_url), '"connect_url" is not a URL.')
  const isClear = url.startsWith('mqtt:')
  requireConfig(!isClear || local, '"url" needs mqtts, except for a broker in its own network ("local").')
  requireConfig(!isClear || ca === undefined, '"ca" needs a "url" with mqtts.')
}
