import Type, { type Static } from 'typebox'
import { caField, localField, localUserField, requireConfig } from '../fields.ts'
import { protectionField, secretField, upstreamField } from '../kind.ts'

const HTTP_URL = '^https?://[A-Za-z0-9._:\\[\\]-]+(/[A-Za-z0-9._/-]*)?$'
const AMQP_URL = '^amqps?://[A-Za-z0-9._:\\[\\]-]+$'
const AMQP =
  'Address for agents, amqps://host:port. Default: the host of `url`, with amqps on 5671 for https, else amqp on 5672.'

export const config = Type.Object(
  {
    url: Type.String(
      upstreamField({
        pattern: HTTP_URL,
        maxLength: 1024,
        description: 'Address of the management plugin, https://host:15671.',
      }),
    ),
    username: Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[^:\\u0000-\\u001f]+$',
      description: 'User that Mayfly logs in as; it has the tag administrator.',
    }),
    password: Type.String(secretField({ minLength: 1, maxLength: 1024, description: 'Its password.' })),
    vhosts: Type.Array(Type.String({ minLength: 1, maxLength: 255, description: 'Virtual host.' }), {
      minItems: 1,
      maxItems: 64,
      default: ['/'],
      description: 'Virtual hosts that a credential may be granted.',
    }),
    ca: caField('PEM of the certificate authority of `url`.'),
    local: localField(
      'The broker is on this machine or in its own network: permits loopback addresses and http.',
    ),
    local_user: localUserField(),
    // Agents send their passwords there.
    amqp_url: Type.Optional(
      Type.String(protectionField({ pattern: AMQP_URL, maxLength: 1024, description: AMQP })),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ url: 'https://rabbit.example.com:15671', username: 'mayfly', password: 'change-me' }],
  },
)

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
