import { isObject, parseJson } from '../../domain/formats/json.ts'
import { type AskedRequest, confirmedText } from '../../domain/people/canonical-request.ts'
import type { Confirmation, SsoConfirmation } from '../../domain/people/confirmation.ts'
import { type Challenge, isCommand } from '../../domain/people/session.ts'
import { decodeBase64url } from '../../keys/base64url.ts'
import {
  type AssertionAnswer,
  claimedChallenge,
  sha256,
  userHandleOf,
  verifyAssertion,
} from '../../keys/webauthn.ts'
import type { Actor, OperatorCaller } from '../caller.ts'
import { confirmationRequired, timeOf } from '../confirm.ts'
import type { Core } from '../context.ts'
import { countFailure, requireLoginRate } from './login-limits.ts'

type Parts = Pick<Core, 'store' | 'rates' | 'settings' | 'denials' | 'meter'>

/**
 * The same actor, with the confirmation in this header if there is one. It is used up before anything is done, so that it
 * works once, also where the act then fails. Throws `confirmation_required`, with a new challenge, for a confirmation that
 * is not valid for this request, and `rate_limited`.
 */
export async function confirmRequest(
  core: Parts,
  actor: Actor<OperatorCaller>,
  asked: AskedRequest,
  header: string | undefined,
): Promise<Actor<OperatorCaller>> {
  const caller = { ...actor.caller, asked }
  // A command is given no challenge: its login counts for a while (`core/confirm.ts`).
  if (header === undefined || isCommand(caller.session)) return { ...actor, caller }
  const subject = `operator ${caller.operatorId}`
  requireLoginRate(core, subject, actor.origin.ipAddress)
  const answer = readHeader(header)
  const confirmation =
    answer === undefined
      ? undefined
      : 'sso' in answer
        ? await checkLogin(core, caller, asked, answer.sso)
        : await check(core, caller, asked, answer)
  if (confirmation !== undefined) return { ...actor, caller: { ...caller, confirmation } }
  countFailure(core, subject, actor, 'confirmation')
  const message = 'The confirmation does not belong to this request, or was used before; confirm it again.'
  throw await confirmationRequired(core, caller, message)
}

async function check(
  core: Parts,
  { operatorId, session }: OperatorCaller,
  asked: AskedRequest,
  answer: AssertionAnswer,
): Promise<Confirmation | undefined> {
  const { store, settings } = core
  const { relyingParty } = settings
  const challenge = claimedChallenge(answer) ?? ''
  const [given, passkey] = await Promise.all([
    givenFor(core, session, challenge),
    store.operators.findPasskey(answer.id),
  ])
  const request = given && requestOf(given, asked)
  if (request === undefined || passkey?.operatorId !== operatorId) return undefined
  const { clientDataJSON: clientDataJson, authenticatorData, signature, userHandle } = answer.response
  if (typeof userHandle === 'string' && userHandle !== userHandleOf(operatorId)) return undefined
  const used = await verifyAssertion(relyingParty, answer, challenge, passkey)
  if (used === undefined) return undefined
  const outcome = await store.commit([
    store.sessions.useChallenge(challenge),
    store.operators.usePasskey(passkey, { ...used, at: store.now() }),
  ])
  if (!outcome.done) return undefined
  const { id: passkeyId, publicKey } = passkey
  return {
    request,
    passkeyId,
    publicKey,
    clientDataJson,
    authenticatorData,
    signature,
    rpId: relyingParty.id,
    origin: relyingParty.origin,
  }
}

/** The challenge that this session was given, if it may still be answered. */
async function givenFor(
  { store }: Parts,
  session: OperatorCaller['session'],
  challenge: string,
): Promise<Challenge | undefined> {
  const given = await store.sessions.findChallenge(challenge)
  const isOpen = given?.purpose === 'confirm' && given.expiresAt > store.now()
  return isOpen && given.sessionId === session.id ? given : undefined
}

/** The canonical text of this request, if the challenge was given for it. */
function requestOf({ challenge, nonce, madeAt }: Challenge, asked: AskedRequest): string | undefined {
  const request = confirmedText(asked, { nonce, time: timeOf(madeAt) })
  return sha256(request) === challenge ? request : undefined
}

/** The person has logged in again at their provider, with this challenge as the nonce (`sso-login.ts`). */
async function checkLogin(
  core: Parts,
  { session }: OperatorCaller,
  asked: AskedRequest,
  challenge: string,
): Promise<SsoConfirmation | undefined> {
  const { store } = core
  const given = await givenFor(core, session, challenge)
  const request = given && requestOf(given, asked)
  const answer = given?.answer ?? null
  if (request === undefined || answer === null) return undefined
  const outcome = await store.commit([store.sessions.useChallenge(challenge)])
  return outcome.done ? { request, nonce: challenge, sso: answer } : undefined
}

const MAX_HEADER = 8_192

/** Base64url of the JSON that a browser makes of an assertion, or of `{sso: {challenge}}`. Other members are passed over. */
function readHeader(header: string): AssertionAnswer | { readonly sso: string } | undefined {
  const bytes = header.length > MAX_HEADER ? undefined : decodeBase64url(header)
  const value = bytes === undefined ? undefined : parseJson(bytes.toString('utf8'))
  const sso = isObject(value) ? value['sso'] : undefined
  if (isObject(sso)) return typeof sso['challenge'] === 'string' ? { sso: sso['challenge'] } : undefined
  if (!isObject(value) || !isObject(value['response'])) return undefined
  const { id, rawId, type, response } = value
  const { clientDataJSON, authenticatorData, signature, userHandle } = response
  const texts = [id, rawId, type, clientDataJSON, authenticatorData, signature]
  if (!texts.every((one) => typeof one === 'string')) return undefined
  if (userHandle !== undefined && userHandle !== null && typeof userHandle !== 'string') return undefined
  return {
    id,
    rawId,
    type,
    response: { clientDataJSON, authenticatorData, signature, userHandle },
  } as AssertionAnswer
}
