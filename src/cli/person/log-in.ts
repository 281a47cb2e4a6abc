import { unexpectedReply } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { checkFree, type KeptLogin, keepOperator, type NewOperatorLogin } from '../session/keep-login.ts'
import { askServerKeys, clientFor } from '../session/open.ts'
import { type OperatorMethod, readProfiles } from '../session/profiles.ts'
import type { Target } from '../session/session.ts'
import { endOperator, endSession } from './end-login.ts'
import { readOffer } from './offer.ts'

export interface Wish {
  readonly method: OperatorMethod
  /** What the server calls itself, as the person says. */
  readonly issuer: string | undefined
}

/** Logs a person in, and stores the login in place of one of before, whose session ends. Throws `CliError`. */
export async function logInAndKeep(
  context: Context,
  target: Target,
  wish: Wish,
): Promise<{ readonly login: NewOperatorLogin; readonly kept: KeptLogin }> {
  // Before a person is bothered.
  checkFree(await readProfiles(context), target)
  const login = await logIn(context, target, wish)
  return { login, kept: await keepInstead(context, target, login) }
}

/** Without a place to keep it, the new session ends: nobody could use it. */
export async function keepInstead(
  context: Context,
  target: Target,
  login: NewOperatorLogin,
): Promise<KeptLogin> {
  const endOld = await endOperator(context, target)
  try {
    const kept = await keepOperator(context, login)
    await endOld().catch(() => undefined)
    return kept
  } catch (error) {
    await endSession(context, login.target, login.token, login.operator.session).catch(() => undefined)
    throw error
  }
}

/** Stores nothing. Throws `CliError`, and what the client throws. */
export async function logIn(
  context: Context,
  target: Target,
  { method, issuer: given }: Wish,
): Promise<NewOperatorLogin> {
  const offer = await readOffer(context, target, { method, given })
  const { token, expiresAt } =
    method === 'browser'
      ? await (await import('./browser.ts')).logInByBrowser(context, offer)
      : await (await import('./device.ts')).logInByDevice(context, offer)
  // The keys of the server may be others than the ones that an old login remembers.
  const client = await clientFor(context, { ...target, profile: undefined }, { kind: 'bearer', token })
  const { kind, id, email, name, session } = await client.admin.me()
  if (kind !== 'operator' || id === undefined || name === undefined || session === undefined)
    throw unexpectedReply()
  return {
    target,
    token,
    operator: {
      id,
      email: email ?? undefined,
      name,
      method,
      session: session.id,
      expires: new Date(expiresAt).toISOString(),
      issuer: offer.issuer,
    },
    serverKeys: await askServerKeys(context, target),
  }
}
