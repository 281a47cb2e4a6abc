import { Type } from 'typebox'
import { nullable, text, timestamp } from './shared.ts'

/** Commands that log in as an operator: `/v1/console/commands`. */
const QUERY =
  'response_type=code&client_id=mayfly-cli&redirect_uri=http%3A%2F%2F127.0.0.1%3A49152%2Fcallback&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256&state=af0ifjsldkj&host=laptop'

export const NamedLogin = Type.Object(
  {
    user_code: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          'The code that the command shows, as it was typed: case, spaces and dashes do not count.',
        examples: ['BCDF-2345'],
      }),
    ),
    request: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 4_096,
        description:
          'For a command on the same machine: the query of the address that it opened, as it came.',
        examples: [QUERY],
      }),
    ),
  },
  { additionalProperties: false, title: 'NamedCommandLogin', description: 'Exactly one of the two.' },
)

export const AskingCommand = Type.Object(
  {
    kind: Type.String({
      enum: ['device', 'browser'],
      description: 'Whether a code was typed, or the command opened this browser.',
    }),
    host: text('The host that the command runs on, as it says.', 'laptop'),
    ip_address: nullable(text('Where it asked from; null for a browser.', '192.0.2.7')),
    user_agent: nullable(text('What it calls itself; null for a browser.', 'mayfly/0.2.0')),
    redirect_uri: nullable(
      text('Where a browser goes with the answer; null for a device.', 'http://127.0.0.1:49152/callback'),
    ),
    requested_at: nullable(timestamp('When it asked; null for a browser.')),
    expires_at: nullable(timestamp('Until when it waits; null for a browser.')),
  },
  { title: 'AskingCommand' },
)

export const DecidedLogin = Type.Object(
  {
    redirect_to: Type.Optional(
      text(
        'Where the browser goes; absent for a device, which asks by itself.',
        'http://127.0.0.1:49152/callback?code=mac_…&state=af0ifjsldkj&iss=https%3A%2F%2Fmayfly.example.com',
      ),
    ),
  },
  { title: 'DecidedCommandLogin' },
)
