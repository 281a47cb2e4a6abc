import { CHALLENGE_MS, CHALLENGES_PER_MINUTE, MINUTE_MS } from '../domain/limits.ts'
import { type AskedRequest, confirmedText } from '../domain/people/canonical-request.ts'
import { isCommand } from '../domain/people/session.ts'
import { Problem } from '../domain/problems.ts'
import { isAdminScope } from '../domain/scope.ts'
import { assertionOptions, newNonce, sha256 } from '../keys/webauthn.ts'
import type { Actor, OperatorCaller } from './caller.ts'
import type { Core } from './context.ts'
import { takeOrRefuse } from './rates.ts'

type Parts = Pick<Core, 'store' | 'settings' | 'rates'>

/**
 * For an act that cannot be undone. Throws `confirmation_required` for an operator who has not confirmed exactly this request;
 * agents and the local host pass, and so does a command for some minutes after its login.
 */
export async function requireConfirmed(core: Parts, { caller }: Actor): Promise<void> {
  if (caller.kind !== 'operator' || caller.confirmation !== undefined) return
  const { confirmedUntil } = caller.session
  if (confirmedUntil !== null && confirmedUntil > core.store.now()) return
  throw await confirmationRequired(core, caller)
}

/** The same for an act that gives power over this server: `refuseCommand`, too. */
export async function requireConfirmedPower(core: Parts, actor: Actor): Promise<void> {
  refuseCommand(actor)
  await requireConfirmed(core, actor)
}

/** The same for an act that gives these scopes, if one of them is an admin scope. */
export async function requireConfirmedScopes(
  core: Parts,
  actor: Actor,
  scopes: readonly string[],
): Promise<void> {
  if (scopes.some(isAdminScope)) await requireConfirmedPower(core, actor)
}

/**
 * What gives power must be confirmed byte for byte, and the token of a command is a file on a laptop. Throws `not_allowed`
 * for a command, however fresh its login is.
 */
export function refuseCommand({ caller }: Actor): void {
  if (caller.kind === 'operator' && isCommand(caller.session))
    throw new Problem('not_allowed', {
      message:
        "The login of a command may not do this: do it in the console, or on the server's machine over admin.sock.",
    })
}

/**
 * The refusal with a new challenge, which is the SHA-256 of the request; empty options for an operator without a passkey
 * that works here; for a person of single sign-on, where to log in again. May be `rate_limited`.
 */
export async function confirmationRequired(
  core: Parts,
  { asked, operatorId, session }: OperatorCaller,
  message?: string,
): Promise<Problem> {
  if (asked === undefined) throw new Error('a route that may need a confirmation is not marked with it')
  if (isCommand(session))
    return new Problem('confirmation_required', {
      message: 'The login of this command is too old for this: log in again, and repeat the request.',
      options: { command: true },
    })
  if (session.method === 'sso') return loginRequired(core, { asked, operatorId, session }, message)
  const { relyingParty } = core.settings
  const said = message === undefined ? {} : { message }
  const passkeys = (await core.store.operators.passkeysOf(operatorId)).filter(
    ({ rpId }) => rpId === relyingParty.id,
  )
  if (passkeys.length === 0)
    return new Problem('confirmation_required', {
      message: 'This must be confirmed with a passkey, and you have none: register one first.',
      options: {},
    })
  const challenge = await newChallenge(core, asked, session)
  return new Problem('confirmation_required', {
    ...said,
    options: assertionOptions(relyingParty, challenge, passkeys),
  })
}

/** A person of single sign-on confirms by another login at their provider, whose nonce is the challenge. */
async function loginRequired(
  core: Parts,
  {
    asked,
    operatorId,
    session,
  }: { readonly asked: AskedRequest } & Pick<OperatorCaller, 'operatorId' | 'session'>,
  message = 'Log in again at your provider of single sign-on to confirm this.',
): Promise<Problem> {
  const operator = await core.store.operators.findLiving(operatorId)
  const challenge = await newChallenge(core, asked, session)
  const url = `${core.settings.relyingParty.consoleUrl}/sso?confirm=${challenge}`
  return new Problem('confirmation_required', {
    message,
    options: { sso: { provider: operator?.provider, challenge, url } },
  })
}

/** The SHA-256 of this request, of a nonce and of the time, for one answer of this session. May throw `rate_limited`. */
async function newChallenge(
  { store, rates }: Parts,
  asked: AskedRequest,
  { id: sessionId }: OperatorCaller['session'],
): Promise<string> {
  const now = store.now()
  const rate = { count: CHALLENGES_PER_MINUTE, perMs: MINUTE_MS }
  takeOrRefuse(rates, `challenge|${sessionId}`, rate, now, 'Too many confirmations; try again later.')
  const nonce = newNonce()
  const challenge = sha256(confirmedText(asked, { nonce, time: timeOf(now) }))
  const given = { challenge, purpose: 'confirm', sessionId, nonce, madeAt: now } as const
  await store.commit([store.sessions.addChallenge({ ...given, expiresAt: now + CHALLENGE_MS, answer: null })])
  return challenge
}

/** As the confirmed text has it. */
export const timeOf = (ms: number): string => new Date(ms).toISOString()
