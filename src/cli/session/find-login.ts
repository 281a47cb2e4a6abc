import type { Context } from '../frame/verb.ts'
import { findAdminLogin, findAgentLogin, type Login, type Target } from './session.ts'

/**
 * The login of an agent: the stored one or that of the environment, else who this job or machine is, as somebody else
 * signs it; undefined if there is none. Throws `CliError`.
 */
export async function findLogin(context: Context, target: Target): Promise<Login | undefined> {
  return (await findAgentLogin(context, target)) ?? findIdentity(context, target)
}

/** As `findLogin`, for verbs of administration: the token of an operator will do. */
export async function findAnyLogin(context: Context, target: Target): Promise<Login | undefined> {
  return (await findAdminLogin(context, target)) ?? findIdentity(context, target)
}

async function findIdentity(context: Context, target: Target): Promise<Login | undefined> {
  // A profile that is named, or has a login, stands for that one: nobody acts as another in its place.
  if (target.profileFrom !== 'default' || target.profile?.login !== undefined) return undefined
  const { ambientAuth } = await import('../identity/ambient.ts')
  const auth = await ambientAuth(context, target)
  return auth && { auth, from: 'identity' }
}
