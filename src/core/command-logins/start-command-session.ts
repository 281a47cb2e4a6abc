import { COMMAND_CONFIRMED_MS, MAX_SESSIONS, SESSION_MS } from '../../domain/limits.ts'
import type { Operator } from '../../domain/people/operator.ts'
import { type CommandLogin, type Session, sessionEnd } from '../../domain/people/session.ts'
import { Problem } from '../../domain/problems.ts'
import { mintLoginSecret } from '../../keys/login-secrets.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, OperatorCaller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import { operatorCaller } from '../sessions/authenticate-session.ts'
import { endSteps } from '../sessions/end-session.ts'

export type CommandParts = Pick<Core, 'store' | 'hasher' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter'>

/** The token is shown once. */
export interface StartedCommand {
  readonly caller: OperatorCaller
  readonly session: Session
  readonly token: string
}

const TRIES = 5

/**
 * Hands out the token of a login that a person allowed: in one change with the use of its code, while the session that allowed it lives
 * and is unchanged. `used`: the code was used already. `over`: that session has ended. The oldest of too many sessions ends.
 */
export async function startCommandSession(
  core: CommandParts,
  login: CommandLogin,
  origin: Origin,
): Promise<StartedCommand | 'used' | 'over'> {
  const { store } = core
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const allowing = await store.sessions.find(login.sessionId ?? '')
    if (allowing === undefined || sessionEnd(allowing) <= store.now()) return 'over'
    const operator = await store.operators.findLiving(allowing.operatorId)
    if (operator === undefined) return 'over'
    const token = mintLoginSecret('operator')
    const session = newSession(core, { login, allowing, token }, origin)
    const caller = operatorCaller(operator, session, await store.generation())
    const { id: sessionId, createdAt, expiresAt } = session
    const until = login.kind === 'browser' ? expiresAt : login.expiresAt
    const all = await store.sessions.of(operator.id)
    // Never the one that allows it, which would end this one.
    const tooMany = all.filter(({ id }) => id !== allowing.id).slice(0, 2 - MAX_SESSIONS)
    const outcome = await store.commit([
      store.commandLogins.use(login, { sessionId, until }, createdAt),
      store.sessions.requireUnchanged(allowing),
      store.operators.logIn(operator, createdAt),
      ...endSteps(core, { caller, origin }, tooMany, { all, operator }, 'too_many'),
      store.sessions.insert(session),
      started(core, { caller, origin }, operator, session),
    ])
    if (outcome.done) {
      core.meter.authenticated('session', 'ok')
      return { caller, session, token }
    }
    if (outcome.step === 0) return 'used'
  }
  throw new Problem('conflict', { message: 'Somebody logs in as this operator at the same time; try again.' })
}

function newSession(
  core: CommandParts,
  {
    login,
    allowing,
    token,
  }: { readonly login: CommandLogin; readonly allowing: Session; readonly token: string },
  { ipAddress, userAgent }: Origin,
): Session {
  const now = core.store.now()
  return {
    id: core.ids.id('session'),
    operatorId: allowing.operatorId,
    secretHash: core.hasher.hash(token),
    keyHash: '',
    method: login.kind,
    passkeyId: allowing.passkeyId,
    version: 1,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: Math.min(now + SESSION_MS, allowing.expiresAt),
    mayRegisterUntil: null,
    ipAddress,
    userAgent,
    allowedBy: allowing.id,
    host: login.host,
    scopes: allowing.scopes,
    backendScopes: allowing.backendScopes,
    confirmedUntil: now + COMMAND_CONFIRMED_MS,
  }
}

function started(core: CommandParts, actor: Actor<OperatorCaller>, { id }: Operator, session: Session) {
  const details = {
    operator_id: id,
    session_id: session.id,
    method: session.method,
    host: session.host,
    allowed_by: session.allowedBy,
  }
  return audit(core, actor, { action: 'session.started', details })
}
