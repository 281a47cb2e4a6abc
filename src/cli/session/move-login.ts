import { MayflyError } from '../../client/client.ts'
import { CliError, usage } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { settleIssuer } from './issuer.ts'
import { type KeptLogin, keepLogin, keepOperator } from './keep-login.ts'
import { clientFor, readServerAt } from './open.ts'
import { type KeptOperator, nameOf } from './profiles.ts'
import { authOf, type KeptSecret, loadSecret } from './secrets.ts'
import { serverOf } from './server-address.ts'
import { namesOf } from './server-keys.ts'
import { findStoredOperator, notLoggedIn, readTarget, type Target } from './session.ts'

export interface MovedLogin {
  readonly target: Target
  readonly kept: KeptLogin
  /** Undefined, as is `login`, if only an operator is logged in. */
  readonly agent: { readonly id: string; readonly name: string } | undefined
  readonly login: KeptSecret['kind'] | undefined
  readonly operator: KeptOperator | undefined
}

/**
 * Takes the logins of a profile to the address that --server names, if the same server is there: one that publishes a key
 * that was remembered. Throws `CliError`, and what the logins there throw.
 */
export async function moveLogin(context: Context, issuer: string | undefined): Promise<MovedLogin> {
  const { server: asked, ...globals } = context.globals
  if (asked === undefined)
    throw usage('--move needs --server.', 'Give the new address of the server with --server.')
  const from = await readTarget({ ...context, globals, env: { ...context.env, MAYFLY_SERVER: undefined } })
  const { profile, profileName } = from
  const stored =
    profile?.secret_in && (await loadSecret<KeptSecret>(context, `${profileName}/login`, profile.secret_in))
  const secret = stored?.server === profile?.server ? stored : undefined
  const token = await findStoredOperator(context, from)
  if (profile === undefined || (secret ?? token) === undefined) throw notLoggedIn(from)
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
    secret?.kind === 'private_key_jwt' || token !== undefined
      ? await settleIssuer(context, target, { announced: says?.issuer, given: issuer, command })
      : undefined
  const agent = secret && (await agentOf(context, target, secret, settled))
  const operator =
    token === undefined ? undefined : await operatorOf(context, target, token, profile.operator, settled)
  const ofAgent =
    secret &&
    (await keepLogin(context, {
      target,
      secret,
      agent,
      issuer: secret.kind === 'private_key_jwt' ? settled : undefined,
      serverKeys: keys,
    }))
  const ofOperator =
    token !== undefined && operator !== undefined
      ? await keepOperator(context, { target, token, operator, serverKeys: keys })
      : undefined
  const kept = ofAgent ?? ofOperator
  if (kept === undefined) throw notLoggedIn(from)
  return { target, kept, agent, login: secret?.kind, operator }
}

async function agentOf(context: Context, target: Target, secret: KeptSecret, issuer: string | undefined) {
  const client = await clientFor(context, target, authOf(secret, issuer))
  const { id, name } = await client.status()
  return { id, name }
}

/** Undefined for a login that has ended, which stays behind. */
async function operatorOf(
  context: Context,
  target: Target,
  token: string,
  operator: KeptOperator | undefined,
  issuer: string | undefined,
): Promise<KeptOperator | undefined> {
  if (operator === undefined || issuer === undefined) return undefined
  try {
    await (await clientFor(context, target, { kind: 'bearer', token })).admin.me()
    return { ...operator, issuer }
  } catch (error) {
    if (!(error instanceof MayflyError) || error.status !== 401) throw error
    context.out.note(`The login of ${nameOf(operator)} has ended: run \`mayfly login --${operator.method}\`.`)
    return undefined
  }
}
