import { AUTHORIZATION_CODE_MS } from '../../domain/limits.ts'
import {
  type AuthorizationRequest,
  readAuthorizationRequest,
} from '../../domain/people/authorization-request.ts'
import type { CommandLogin } from '../../domain/people/session.ts'
import { readUserCode } from '../../domain/people/user-code.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { mintLoginSecret } from '../../keys/login-secrets.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, OperatorCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import { requireConfirmed } from '../confirm.ts'
import type { Core } from '../context.ts'
import { countFailure, requireLoginRate } from '../sessions/login-limits.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter'>

/** What a person decides on: the code that they typed, or the query of the authorization request that their browser was sent. */
export interface NamedLogin {
  readonly user_code?: string | undefined
  readonly request?: string | undefined
}

/** What is known of the command that asks: what it says, and where it asked from. */
export type AskingCommand =
  | { readonly kind: 'device'; readonly login: CommandLogin }
  | { readonly kind: 'browser'; readonly request: AuthorizationRequest }

/**
 * Who asks. Throws `not_found`, the same for a code that is unknown, has expired, or was decided on; `invalid_request` for an
 * authorization request that is not the command's, and `rate_limited`.
 */
export async function lookAtCommandLogin(
  core: Parts,
  actor: Actor<OperatorCaller>,
  { user_code, request }: NamedLogin,
): Promise<AskingCommand> {
  if ((user_code === undefined) === (request === undefined))
    throw invalid('Send either "user_code" or "request".')
  if (request !== undefined) return { kind: 'browser', request: readAuthorizationRequest(request) }
  return { kind: 'device', login: await findWaiting(core, actor, user_code ?? '') }
}

/** Typed codes are tried by somebody who is logged in: few, and each failure is recorded. */
async function findWaiting(core: Parts, actor: Actor<OperatorCaller>, typed: string): Promise<CommandLogin> {
  const subject = `user code ${actor.caller.session.id}`
  requireLoginRate(core, subject, actor.origin.ipAddress)
  const code = readUserCode(typed)
  const login =
    code === undefined ? undefined : await core.store.commandLogins.findByUserCode(core.hasher.hash(code))
  if (login?.state === 'waiting' && login.expiresAt > core.store.now()) return login
  countFailure(core, subject, actor, 'user_code')
  throw noSuchCode()
}

const noSuchCode = () =>
  new Problem('not_found', {
    message:
      'No command waits under this code: it is mistyped, has expired, or was used. Run mayfly login again.',
  })

/**
 * The command gets a token of this operator once it asks. Returns where the browser goes, for one that waits there. Throws as
 * `lookAtCommandLogin`, and `confirmation_required`.
 */
export async function allowCommandLogin(
  core: Parts,
  actor: Actor<OperatorCaller>,
  named: NamedLogin,
): Promise<string | undefined> {
  const asking = await lookAtCommandLogin(core, actor, named)
  await requireConfirmed(core, actor)
  const { session, operatorId } = actor.caller
  const entry = audit(core, actor, { action: 'session.allowed', details: described(asking) })
  if (asking.kind === 'device') {
    await decide(core, actor, asking.login, { state: 'allowed', operatorId, sessionId: session.id }, entry)
    return undefined
  }
  const { redirectUri, codeChallenge, state, host } = asking.request
  const code = mintLoginSecret('authorization')
  const now = core.store.now()
  const step = core.store.commandLogins.insert({
    codeHash: core.hasher.hash(code),
    kind: 'browser',
    userCodeHash: null,
    state: 'allowed',
    host,
    ipAddress: null,
    userAgent: null,
    operatorId,
    sessionId: session.id,
    redirectUri,
    codeChallenge,
    polledAt: null,
    pollMs: null,
    createdAt: now,
    expiresAt: now + AUTHORIZATION_CODE_MS,
  })
  await commit(core, actor, [step, entry])
  return answer(core, redirectUri, { code, state })
}

/** The command is told that it was denied. Returns where the browser goes. Throws as `lookAtCommandLogin`. */
export async function denyCommandLogin(
  core: Parts,
  actor: Actor<OperatorCaller>,
  named: NamedLogin,
): Promise<string | undefined> {
  const asking = await lookAtCommandLogin(core, actor, named)
  const entry = audit(core, actor, { action: 'session.denied', details: described(asking) })
  if (asking.kind === 'device') {
    await decide(core, actor, asking.login, { state: 'denied', operatorId: null, sessionId: null }, entry)
    return undefined
  }
  await commit(core, actor, [entry])
  return answer(core, asking.request.redirectUri, { error: 'access_denied', state: asking.request.state })
}

/** Two may type the same code: the second finds no command. */
async function decide(
  core: Parts,
  actor: Actor<OperatorCaller>,
  login: CommandLogin,
  decision: Pick<CommandLogin, 'state' | 'operatorId' | 'sessionId'>,
  entry: ReturnType<typeof audit>,
): Promise<void> {
  const step = core.store.commandLogins.decide(login, decision, core.store.now())
  if (!(await commit(core, actor, [step, entry])).done) throw noSuchCode()
}

function described(asking: AskingCommand) {
  if (asking.kind === 'browser') return { method: 'browser', host: asking.request.host }
  const { host, ipAddress, userAgent } = asking.login
  return { method: 'device', host, ip_address: ipAddress, user_agent: userAgent }
}

/** RFC 6749 §4.1.2, RFC 9207 §2. */
function answer({ settings }: Parts, redirectUri: string, parameters: Readonly<Record<string, string>>) {
  return `${redirectUri}?${new URLSearchParams({ ...parameters, iss: settings.issuer })}`
}
