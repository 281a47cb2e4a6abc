import { SESSION_USE_MS } from '../../domain/limits.ts'
import { type Operator, operatorActor } from '../../domain/people/operator.ts'
import { type Session, sessionEnd } from '../../domain/people/session.ts'
import { isLoginSecret } from '../../keys/login-secrets.ts'
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
  const now = store.now()
  if (session === undefined || sessionEnd(session) <= now) throw refuse(core, origin)
  if (key !== undefined && !core.hasher.matches(key, session.keyHash)) throw refuse(core, origin)
  const operator = await store.operators.findLiving(session.operatorId)
  if (operator === undefined) throw refuse(core, origin)
  if (now - session.lastUsedAt >= SESSION_USE_MS) await recordUse(core, session, now)
  return { caller: operatorCaller(operator, session, generation), origin }
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
    method: 'session',
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
