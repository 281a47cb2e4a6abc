import { CHALLENGE_MS, CHALLENGES_PER_MINUTE, MINUTE_MS } from '../domain/limits.ts'
import { confirmedText } from '../domain/people/canonical-request.ts'
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
 * that works here. May be `rate_limited`.
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
  const now = core.store.now()
  const rate = { count: CHALLENGES_PER_MINUTE, perMs: MINUTE_MS }
  takeOrRefuse(core.rates, `challenge|${session.id}`, rate, now, 'Too many confirmations; try again later.')
  const nonce = newNonce()
  const challenge = sha256(confirmedText(asked, { nonce, time: timeOf(now) }))
  await core.store.commit([
    core.store.sessions.addChallenge({
      challenge,
      purpose: 'confirm',
      sessionId: session.id,
      nonce,
      madeAt: now,
      expiresAt: now + CHALLENGE_MS,
      answer: null,
    }),
  ])
  return new Problem('confirmation_required', {
    ...said,
    options: assertionOptions(relyingParty, challenge, passkeys),
  })
}

/** As the confirmed text has it. */
export const timeOf = (ms: number): string => new Date(ms).toISOString()
