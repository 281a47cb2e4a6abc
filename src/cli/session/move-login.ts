import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { settleIssuer } from './issuer.ts'
import { type KeptLogin, keepLogin } from './keep-login.ts'
import { clientFor, readServerAt } from './open.ts'
import { authOf, type KeptSecret, loadSecret } from './secrets.ts'
import { serverOf } from './server-address.ts'
import { namesOf } from './server-keys.ts'
import { notLoggedIn, readTarget, type Target } from './session.ts'

export interface MovedLogin {
  readonly target: Target
  readonly kept: KeptLogin
  readonly agent: { readonly id: string; readonly name: string }
  readonly login: KeptSecret['kind']
}

/**
 * Takes the login of a profile to the address that --server names, if the same server is there: one that publishes a key
 * that was remembered. Throws `CliError`, and what the login there throws.
 */
export async function moveLogin(context: Context, issuer: string | undefined): Promise<MovedLogin> {
  const { server: asked, ...globals } = context.globals
  if (asked === undefined)
    throw usage('--move needs --server.', 'Give the new address of the server with --server.')
  const from = await readTarget({ ...context, globals, env: { ...context.env, MAYFLY_SERVER: undefined } })
  const { profile, profileName } = from
  const secret = profile && (await loadSecret<KeptSecret>(context, `${profileName}/login`, profile.secret_in))
  if (profile === undefined || secret?.server !== profile.server) throw notLoggedIn(from)
  const target: Target = {
    ...from,
    server: serverOf(asked, context.env),
    profileFrom: 'flag',
    profile: undefined,
  }
  const says = await readServerAt(context, target)
  const keys = namesOf(says?.keys ?? [])
  if (profile.server_keys !== undefined && !keys.some((key) => profile.server_keys?.includes(key)))
    throw new CliError(
      'server_differs',
      `${target.server.text} has none of the keys that ${profile.server} had at your login, so it is another server.`,
      { hint: 'Check the address. To become an agent of that server, use another --profile.' },
    )
  const command = 'mayfly login --move'
  const settled =
    secret.kind === 'private_key_jwt'
      ? await settleIssuer(context, target, { announced: says?.issuer, given: issuer, command })
      : undefined
  const client = await clientFor(context, target, authOf(secret, settled))
  const { id, name } = await client.status()
  const agent = { id, name }
  const kept = await keepLogin(context, { target, secret, agent, issuer: settled, serverKeys: keys })
  return { target, kept, agent, login: secret.kind }
}
