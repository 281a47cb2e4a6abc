import type { Client } from '../../client/client.ts'
import { isSameAddress } from '../../client/same-address.ts'
import { CliError, EXIT, unexpectedReply } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { settleIssuer } from '../session/issuer.ts'
import { clientFor } from '../session/open.ts'
import type { OperatorMethod } from '../session/profiles.ts'
import type { Target } from '../session/session.ts'

/** What a server offers to a person who logs in with the command. */
export interface Offer {
  /** For requests without a login. */
  readonly client: Client
  readonly issuer: string
  /** The page that allows a command which listens on this machine. */
  readonly authorizationEndpoint: string
}

/** The server as it is now: a new login does not depend on what an old one remembers. */
const asNew = (target: Target): Target => ({ ...target, profile: undefined })

/** Whether persons may log in with the command. Throws `UnreachableError` and `MayflyError`. */
export async function isOffered(context: Context, target: Target): Promise<boolean> {
  const client = await clientFor(context, asNew(target), { kind: 'none' })
  return (await client.discovery()).authorization_endpoint !== undefined
}

/**
 * Asks the server. `given` is what the person says that it calls itself. Throws `CliError` where persons do not log in with
 * the command, and for an issuer that is not its address: whoever relays the requests of another server would get the
 * login there.
 */
export async function readOffer(
  context: Context,
  target: Target,
  { method, given }: { readonly method: OperatorMethod; readonly given: string | undefined },
): Promise<Offer> {
  const client = await clientFor(context, asNew(target), { kind: 'none' })
  const { issuer: announced, authorization_endpoint: endpoint } = await client.discovery()
  if (endpoint === undefined) throw notOffered(target)
  const command = `mayfly login --${method}`
  const issuer = await settleIssuer(context, target, { announced, given, command })
  return { client, issuer, authorizationEndpoint: pageOf(endpoint, issuer) }
}

/** An address of the server's own pages, in its one form. Throws `CliError` for any other. */
export function pageOf(address: unknown, issuer: string): string {
  const url = typeof address === 'string' && URL.canParse(address) ? new URL(address) : undefined
  if (
    url === undefined ||
    url.username + url.password + url.hash + url.search !== '' ||
    !isSameAddress(url.origin, new URL(issuer).origin)
  )
    throw unexpectedReply('The server names a page that is not its own.')
  return url.href
}

function notOffered({ server }: Target): CliError {
  return new CliError(
    'operator_login_off',
    `Persons do not log in with the command at ${server.text} (operator_login is off, or the server is older).`,
    {
      exit: EXIT.refused,
      hint: 'Use the console, or log in as an agent with admin scopes: `mayfly login`.',
    },
  )
}
