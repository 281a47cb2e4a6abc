import type { Unusable } from '../types.ts'

/** Why a connection was not made, as it is recorded. */
export type RefusalCode =
  | 'credential_ended'
  | 'no_sign_of_life'
  | 'wrong_placeholder'
  | 'placeholder_misused'
  | 'database_not_permitted'
  | 'replication_not_permitted'
  | 'bad_startup'
  | 'login_timeout'
  | 'too_many_connections'
  | 'upstream_address'
  | 'upstream_unreachable'
  | 'upstream_timeout'
  | 'upstream_tls'
  | 'upstream_refused'
  | 'upstream_protocol'
  | 'upstream_login_method'

/** The message is for the child: it names what to do next, and nothing that is secret. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly code: RefusalCode
  readonly hint: string

  constructor(code: RefusalCode, message: string, hint: string) {
    super(message)
    this.code = code
    this.hint = hint
  }
}

export function refusalOf({ state, why }: Unusable): Refusal {
  return state === 'ended'
    ? new Refusal(
        'credential_ended',
        `The credential of this run has ended: ${why}`,
        'This run gets no other one of this backend. Begin a new run.',
      )
    : new Refusal(
        'no_sign_of_life',
        `There is no credential at the moment: ${why}`,
        'Try again in a few seconds.',
      )
}

/** Of a child that breaks the protocol. */
export const badStartup = (what: string) =>
  new Refusal(
    'bad_startup',
    `The proxy does not understand the client: ${what}.`,
    'Use another client or driver.',
  )

export const upstreamProtocol = (what: string) =>
  new Refusal(
    'upstream_protocol',
    `The server sent what the proxy does not understand: ${what}.`,
    'Check that the host and port of the backend are those of this kind of database.',
  )

export const noUpstreamTls = () =>
  new Refusal(
    'upstream_tls',
    'The server does not offer TLS.',
    'Turn TLS on at the server, or set "tls" of the backend.',
  )

export const databaseNotPermitted = (databases: readonly string[]) =>
  new Refusal(
    'database_not_permitted',
    'The backend of this credential does not permit the database that was asked for.',
    `It permits: ${databases.join(', ')}.`,
  )

export const wrongPlaceholder = () =>
  new Refusal(
    'wrong_placeholder',
    'The password is not the placeholder of this run.',
    'Use the password of the environment or the credential that this run was given.',
  )

export const misusedPlaceholder = () =>
  new Refusal(
    'placeholder_misused',
    'The password is the placeholder of another credential of this run.',
    'Use each placeholder only where it belongs; this was recorded.',
  )
