import { CHALLENGE_MS, DOCUMENTS_PER_MINUTE, MINUTE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import {
  type AssertionAnswer,
  assertionOptions,
  claimedChallenge,
  mintLoginChallenge,
  readLoginChallenge,
  sha256,
  userHandleOf,
  verifyAssertion,
} from '../../keys/webauthn.ts'
import type { Actor, Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import { takeOrRefuse } from '../rates.ts'
import { countFailure, requireLoginRate } from './login-limits.ts'
import { type StartedSession, startSession } from './start-session.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter'>

/**
 * What a passkey is to sign for a login. It names no credentials, so nobody has to say who they are, and nothing tells
 * whether an address is known. Throws `rate_limited`.
 */
export function beginPasskeyLogin(core: Parts, { ipAddress }: Origin): object {
  const rate = { count: DOCUMENTS_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'Too many logins begin in this network; try again later.'
  takeOrRefuse(core.rates, `login challenge|${networkOf(ipAddress)}`, rate, core.store.now(), message)
  return assertionOptions(core.settings.relyingParty, mintLoginChallenge(core.hasher, core.store.now()))
}

/** Throws `unauthorized`, the same for an unknown passkey and a wrong signature, and `rate_limited`. */
export async function logInByPasskey(
  core: Parts,
  answer: AssertionAnswer,
  origin: Origin,
): Promise<StartedSession> {
  const subject = `passkey ${sha256(answer.id)}`
  requireLoginRate(core, subject, origin.ipAddress)
  const started = await tryPasskey(core, answer, origin)
  if (started !== undefined) return started
  const actor: Actor<undefined> = { caller: undefined, origin }
  countFailure(core, subject, actor, 'passkey')
  throw new Problem('unauthorized', { message: 'The passkey was not accepted.' })
}

/** An unknown passkey takes the same queries and one check of a signature, as a known one does. */
async function tryPasskey(
  core: Parts,
  answer: AssertionAnswer,
  origin: Origin,
): Promise<StartedSession | undefined> {
  const { store, settings } = core
  const now = store.now()
  const challenge = claimedChallenge(answer) ?? ''
  const until = readLoginChallenge(core.hasher, challenge, now)
  const passkey = await store.operators.findPasskey(answer.id)
  const used = await verifyAssertion(settings.relyingParty, answer, challenge, passkey)
  const operator = await store.operators.findLiving(passkey?.operatorId ?? '')
  if (until === undefined || passkey === undefined || used === undefined || operator === undefined)
    return undefined
  // A discoverable credential says whose it is (WebAuthn Level 3, §7.2, step 6).
  if (answer.response.userHandle !== userHandleOf(operator.id)) return undefined
  const steps = [
    store.tokens.useProof(`login|${sha256(challenge)}`, until + CHALLENGE_MS),
    store.operators.usePasskey(passkey, { ...used, at: now }),
  ]
  return startSession(core, operator.id, { method: 'passkey', passkeyId: passkey.id, steps }, origin)
}
