import { SESSION_USE_MS } from '../../domain/limits.ts'
import { type Operator, operatorActor } from '../../domain/people/operator.ts'
import { isCommand, type Session, sessionEnd } from '../../domain/people/session.ts'
import { isLoginSecret } from '../../keys/login-secrets.ts'
import { refuseBearer } from '../authentication/authenticate.ts'
import type { Actor, OperatorCaller, Origin } from '../caller.ts'
import { sessionEnded } from '../commit.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'denials' | 'meter'>

/** What a request of a browser presents: the cookie, and the key that only its page can send. */
export interface PresentedSession {
  readonly secret: string | undefined
  /** Undefined: the route does without (`RouteRule.byCookie`). */
  readonly key: string | undefined
}

/**
 * The operator with this session. It is read from the store each time, so that a session that ended on another node is
 * refused here with the next request. Throws `unauthorized`.
 */
export async function authenticateSession(
  core: Parts,
  { secret, key }: PresentedSession,
  origin: Origin,
): Promise<Actor<OperatorCaller>> {
  const { store } = core
  const generation = await store.generation()
  if (secret === undefined || !isLoginSecret('session', secret)) throw refuse(core, origin)
  if (key !== undefined && !isLoginSecret('key', key)) throw refuse(core, origin)
  const session = await store.sessions.findBySecret(core.hasher.hash(secret))
  if (session === undefined) throw refuse(core, origin)
  if (key !== undefined && !core.hasher.matches(key, session.keyHash)) throw refuse(core, origin)
  const caller = await callerOf(core, session, generation)
  if (caller === undefined) throw refuse(core, origin)
  return { caller, origin }
}

const COMMAND = /^[Bb]earer (mop_[\x21-\x7e]+)$/

/** What a command presents as an operator (RFC 6750 §2.1); undefined for any other `Authorization`. */
export const commandToken = (authorization: string | undefined): string | undefined =>
  COMMAND.exec(authorization ?? '')?.[1]

/** The operator with this token of a command, read from the store each time. Throws `unauthorized`, as for any bad token. */
export async function authenticateCommand(
  core: Parts & Pick<Core, 'settings'>,
  token: string,
  origin: Origin,
): Promise<Actor<OperatorCaller>> {
  const generation = await core.store.generation()
  if (core.settings.operatorLogin === 'off' || !isLoginSecret('operator', token))
    throw refuseBearer(core, origin)
  const session = await core.store.sessions.findBySecret(core.hasher.hash(token))
  const caller =
    session === undefined || !isCommand(session) ? undefined : await callerOf(core, session, generation)
  if (caller === undefined) throw refuseBearer(core, origin)
  return { caller, origin }
}

/** Undefined for a session that is over, or whose operator has ended. */
async function callerOf(
  core: Parts,
  session: Session,
  generation: number,
): Promise<OperatorCaller | undefined> {
  const { store } = core
  const now = store.now()
  if (sessionEnd(session) <= now) return undefined
  const operator = await store.operators.findLiving(session.operatorId)
  if (operator === undefined) return undefined
  if (now - session.lastUsedAt >= SESSION_USE_MS) await recordUse(core, session, now)
  return operatorCaller(operator, session, generation)
}

/** Reading goes on while the store cannot be written; then the session ends as if it were idle. */
async function recordUse({ store }: Parts, session: Session, now: number): Promise<void> {
  await store.commit([store.sessions.recordUse(session.id, now)]).catch(() => undefined)
}

export function operatorCaller(operator: Operator, session: Session, generation: number): OperatorCaller {
  const { id, email } = operator
  const scopes = session.scopes ?? operator.scopes
  const backendScopes = session.backendScopes ?? operator.backendScopes
  return {
    kind: 'operator',
    operatorId: id,
    email,
    actor: operatorActor(operator),
    scopes: [...scopes, ...backendScopes],
    session,
    method: isCommand(session) ? 'operator_token' : 'session',
    asked: undefined,
    confirmation: undefined,
    generation,
  }
}

function refuse(core: Parts, origin: Origin) {
  core.meter.authenticated('session', 'failed')
  core.denials.record(
    { caller: undefined, origin },
    { action: 'auth.failed', details: { reason: 'session' } },
  )
  return sessionEnded()
}
