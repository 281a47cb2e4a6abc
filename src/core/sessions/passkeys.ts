import { CHALLENGE_MS, CHALLENGES_PER_MINUTE, MAX_PASSKEYS, MINUTE_MS } from '../../domain/limits.ts'
import { type Operator, requireShownName } from '../../domain/people/operator.ts'
import type { Passkey } from '../../domain/people/session.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import {
  claimedChallenge,
  newNonce,
  type RegistrationAnswer,
  registrationOptions,
  verifyRegistration,
} from '../../keys/webauthn.ts'
import { audit } from '../audit/entry.ts'
import { requireScope } from '../authentication/authenticate.ts'
import type { Actor, OperatorCaller } from '../caller.ts'
import { commit, sessionEnded } from '../commit.ts'
import { requireConfirmedPower } from '../confirm.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'
import { endEntry } from './end-session.ts'
import { countFailure, requireLoginRate } from './login-limits.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter'>

/**
 * What a new passkey is to answer. Throws `rate_limited`, `conflict` for too many passkeys, and `not_allowed` for a person
 * of single sign-on.
 */
export async function beginRegistration(core: Parts, { caller }: Actor<OperatorCaller>): Promise<object> {
  const { store, settings } = core
  const now = store.now()
  const rate = { count: CHALLENGES_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'Too many registrations; try again later.'
  takeOrRefuse(core.rates, `challenge|${caller.session.id}`, rate, now, message)
  const operator = await store.operators.findLiving(caller.operatorId)
  if (operator === undefined) throw sessionEnded()
  const { email, issuer } = operator
  if (email === null || issuer !== null)
    throw new Problem('not_allowed', {
      message:
        'You log in by single sign-on, which has no passkeys here: it asks you again where it is needed.',
    })
  const known = await store.operators.passkeysOf(operator.id)
  requirePlace(known)
  const challenge = newNonce()
  await store.commit([
    store.sessions.addChallenge({
      challenge,
      purpose: 'register',
      sessionId: caller.session.id,
      nonce: '',
      madeAt: now,
      expiresAt: now + CHALLENGE_MS,
      answer: null,
    }),
  ])
  return registrationOptions(settings.relyingParty, { ...operator, email }, challenge, known)
}

function requirePlace(known: readonly Passkey[]): void {
  if (known.length >= MAX_PASSKEYS)
    throw new Problem('conflict', { message: `You have ${MAX_PASSKEYS} passkeys; remove one first.` })
}

/**
 * Keeps a new passkey of the caller. A session that came from a link may do it once, in its first minutes; otherwise it
 * must be confirmed with a passkey that is there already. Throws `confirmation_required`, `invalid_request`, `conflict`.
 */
export async function addPasskey(
  core: Parts,
  actor: Actor<OperatorCaller>,
  command: { readonly name: string; readonly registration: RegistrationAnswer },
): Promise<Passkey> {
  const { caller, origin } = actor
  const { store, settings } = core
  const { session } = caller
  requireShownName(command.name)
  const now = store.now()
  const isFree = session.mayRegisterUntil !== null && session.mayRegisterUntil > now
  if (!isFree) await requireConfirmedPower(core, actor)
  const subject = `operator ${caller.operatorId}`
  requireLoginRate(core, subject, origin.ipAddress)
  requirePlace(await store.operators.passkeysOf(caller.operatorId))
  const challenge = claimedChallenge(command.registration) ?? ''
  const given = await store.sessions.findChallenge(challenge)
  const made = await verifyRegistration(settings.relyingParty, command.registration, challenge)
  const isGiven =
    given?.purpose === 'register' && given.sessionId === session.id && given.expiresAt > store.now()
  if (!isGiven || made === undefined) {
    countFailure(core, subject, actor, 'registration')
    throw invalid('The registration does not answer the challenge of this session; register again.')
  }
  const passkey: Passkey = {
    ...made,
    id: core.ids.id('passkey'),
    operatorId: caller.operatorId,
    name: command.name,
    rpId: settings.relyingParty.id,
    createdAt: now,
    lastUsedAt: null,
  }
  const outcome = await commit(core, actor, [
    store.sessions.useChallenge(challenge),
    ...(isFree ? [store.sessions.useRegistration(session.id, now)] : []),
    store.operators.addPasskey(passkey),
    audit(core, actor, { action: 'passkey.added', details: describe(passkey) }),
  ])
  if (outcome.done) return passkey
  throw new Problem('conflict', { message: 'This passkey is registered already, or was registered twice.' })
}

/** With the public key: anyone who has the entries can check confirmations without the store. */
function describe({ id, operatorId, name, publicKey, backup, rpId }: Passkey) {
  return { operator_id: operatorId, passkey_id: id, name, public_key: publicKey, backup, rp_id: rpId }
}

/** Those of the caller, or of any operator with `scope`. Throws `insufficient_scope`. */
export function listPasskeys(
  core: Parts,
  actor: Actor,
  { id }: Pick<Operator, 'id'>,
  scope: string,
): Promise<Passkey[]> {
  requireOwn(core, actor, id, scope)
  return core.store.operators.passkeysOf(id)
}

/** Ends the sessions that it started, too. Throws `not_found`, `insufficient_scope` and `confirmation_required`. */
export async function removePasskey(
  core: Parts,
  actor: Actor,
  operator: Pick<Operator, 'id' | 'email'>,
  id: string,
  scope: string,
): Promise<void> {
  requireOwn(core, actor, operator.id, scope)
  const passkey = (await core.store.operators.passkeysOf(operator.id)).find((one) => one.id === id)
  if (passkey === undefined) throw noSuchPasskey()
  await requireConfirmedPower(core, actor)
  const sessions = await core.store.sessions.startedBy(id, operator.id)
  const outcome = await commit(
    core,
    actor,
    [
      ...core.store.operators.removePasskey(id),
      audit(core, actor, { action: 'passkey.removed', details: describe(passkey) }),
      ...sessions.map((one) => endEntry(core, actor, one, operator, 'passkey_removed')),
    ],
    { urgent: true },
  )
  if (!outcome.done) throw noSuchPasskey()
}

const noSuchPasskey = () => new Problem('not_found', { message: 'There is no such passkey.' })

function requireOwn(core: Parts, actor: Actor, operatorId: string, scope: string): void {
  if (actor.caller.kind === 'operator' && actor.caller.operatorId === operatorId) return
  requireScope(core, actor, scope)
}
