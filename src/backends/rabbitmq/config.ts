import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig } from '../fields.ts'

const HTTP_URL = '^https?://[A-Za-z0-9._:\\[\\]-]+(/[A-Za-z0-9._/-]*)?$'
const AMQP_URL = '^amqps?://[A-Za-z0-9._:\\[\\]-]+$'
const AMQP =
  'Address for agents, amqps://host:port. Default: the host of `url`, with amqps on 5671 for https, else amqp on 5672.'

const example = { url: 'https://rabbit.example.com:15671', username: 'mayfly', password: 'change-me' }

export const config = Field.configOf(example, {
  url: Field.upstream('Address of the management plugin, https://host:15671.', {
    pattern: HTTP_URL,
    maxLength: 1024,
  }),
  username: Field.text('User that Mayfly logs in as; it has the tag administrator.', {
    minLength: 1,
    maxLength: 255,
    pattern: '^[^:\\u0000-\\u001f]+$',
  }),
  password: Field.secret('Its password.', { minLength: 1, maxLength: 1024 }),
  vhosts: Field.list(
    Field.text('Virtual host.', { minLength: 1, maxLength: 255 }),
    64,
    'Virtual hosts that a credential may be granted.',
    { default: ['/'] },
  ),
  ca: Field.ca('PEM of the certificate authority of `url`.'),
  local: Field.local(
    'The broker is on this machine or in its own network: permits loopback addresses and http.',
  ),
  local_user: Field.localUser(),
  // Agents send their passwords there.
  amqp_url: Type.Optional(Field.protection(AMQP, { pattern: AMQP_URL, maxLength: 1024 })),
})

export type Config = Static<typeof config>

/** Where agents connect: `amqps://host:port`. */
export function amqpOf({ url, amqp_url }: Config): URL {
  const api = new URL(url)
  const [scheme, port] = api.protocol === 'https:' ? ['amqps', '5671'] : ['amqp', '5672']
  const given = new URL(amqp_url ?? `${scheme}://${api.hostname}:${port}`)
  if (given.port === '') given.port = given.protocol === 'amqps:' ? '5671' : '5672'
  return given
}

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent({ url, amqp_url, local, ca }: Config): void {
  requireConfig(URL.canParse(url), '"url" is not a URL.')
  requireConfig(amqp_url === undefined || URL.canParse(amqp_url), '"amqp_url" is not a URL.')
  const isClear = url.startsWith('http:')
  requireConfig(!isClear || local, '"url" needs https, except for a broker in its own network ("local").')
  requireConfig(!isClear || ca === undefined, '"ca" needs a "url" with https.')
}
