import { Type } from 'typebox'

const STRICT = { additionalProperties: false } as const
const url = (description: string) => Type.String({ minLength: 1, maxLength: 2048, description })
const file = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description })
const address = Type.String({ minLength: 3, maxLength: 320 })
const local = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'The receiver is on this machine or in its own network: permits loopback, link-local and unique-local addresses, and `http`.',
  }),
)

/** One entry of `notify` as written in the file. It has one of `webhook`, `smtp` and `slack`. */
export const ReceiverSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 64, description: 'Name of the receiver, unique.' }),
    webhook: Type.Optional(
      Type.Object(
        {
          url: url('Where to send messages, `https`.'),
          secret_file: file('File with the secret that signs them: `whsec_` and base64 of 24 to 64 bytes.'),
          local,
        },
        { ...STRICT, description: 'Messages as Standard Webhooks.' },
      ),
    ),
    smtp: Type.Optional(
      Type.Object(
        {
          url: url(
            'The mail server: `smtps://host` (TLS, port 465), or `smtp://host` (STARTTLS, port 587; with `local` and without a password no TLS, port 25). `user@` before the host, and another port after it.',
          ),
          from: address,
          to: Type.Union([address, Type.Array(address, { minItems: 1, maxItems: 20 })], {
            description: 'One address, or a list.',
          }),
          password_file: Type.Optional(file('File with the password of the user in the URL.')),
          local,
        },
        { ...STRICT, description: 'Messages as mail.' },
      ),
    ),
    slack: Type.Optional(
      Type.Object(
        {
          url_file: file('File with the URL of an incoming webhook. Whoever has this URL can post.'),
          local,
        },
        { ...STRICT, description: 'Messages in a channel of Slack, or of what takes the same.' },
      ),
    ),
  },
  STRICT,
)
