import { MAX_SESSIONS, REGISTER_MS, SESSION_MS } from '../../domain/limits.ts'
import type { Operator } from '../../domain/people/operator.ts'
import type { Session } from '../../domain/people/session.ts'
import { Problem } from '../../domain/problems.ts'
import { mintLoginSecret } from '../../keys/login-secrets.ts'
import type { Outcome, Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, OperatorCaller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'
import { operatorCaller } from './authenticate-session.ts'
import { endSteps } from './end-session.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'ids' | 'meter'>

/** The secrets are shown once: one goes into the cookie, the other to the page. */
export interface StartedSession {
  readonly actor: Actor<OperatorCaller>
  readonly operator: Operator
  readonly session: Session
  readonly secret: string
  readonly key: string
}

export interface Login {
  readonly method: Session['method']
  readonly passkeyId?: string
  /** What a provider of single sign-on says of the operator at this login. */
  readonly said?: Pick<Operator, 'email' | 'name' | 'provider' | 'scopes' | 'backendScopes'>
  /** Steps of the login, such as the use of the link: if one is refused, so is the login. */
  readonly steps: readonly Step[]
}

const TRIES = 5

/** Undefined when a step of the login was refused, or the operator has ended or changed. The oldest of too many ends. */
export async function startSession(
  core: Parts,
  operatorId: string,
  login: Login,
  origin: Origin,
): Promise<StartedSession | undefined> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const found = await core.store.operators.findLiving(operatorId)
    if (found === undefined) return undefined
    const operator = { ...found, ...login.said }
    const started = await newSession(core, operator, login, origin)
    const all = await core.store.sessions.of(operatorId)
    const tooMany = all.slice(0, 1 - MAX_SESSIONS)
    const own = [...login.steps, core.store.operators.logIn(operator, started.session.createdAt)]
    const outcome = await core.store.commit([
      ...own,
      ...endSteps(core, started.actor, tooMany, { all, operator }, 'too_many'),
      ...startSteps(core, started, operator.joinedAt === null),
    ])
    if (outcome.done) {
      core.meter.authenticated('session', 'ok')
      return started
    }
    if (outcome.step < login.steps.length) return undefined
  }
  throw new Problem('conflict', { message: 'Somebody logs in as this operator at the same time; try again.' })
}

/** The first session of an operator who is made by this login. */
export async function startFirstSession(
  core: Parts,
  operator: Operator,
  login: Login,
  origin: Origin,
): Promise<{ readonly started: StartedSession; readonly outcome: Outcome }> {
  const started = await newSession(core, operator, login, origin)
  const outcome = await core.store.commit([...login.steps, ...startSteps(core, started, true)])
  if (outcome.done) core.meter.authenticated('session', 'ok')
  return { started, outcome }
}

async function newSession(
  core: Parts,
  operator: Operator,
  { method, passkeyId }: Login,
  origin: Origin,
): Promise<StartedSession> {
  const [secret, key] = [mintLoginSecret('session'), mintLoginSecret('key')]
  const now = core.store.now()
  const session: Session = {
    id: core.ids.id('session'),
    operatorId: operator.id,
    secretHash: core.hasher.hash(secret),
    keyHash: core.hasher.hash(key),
    method,
    passkeyId: passkeyId ?? null,
    version: 1,
    createdAt: now,
    lastUsedAt: now,
    expiresAt: now + SESSION_MS,
    mayRegisterUntil: method === 'link' || method === 'invitation' ? now + REGISTER_MS : null,
    ipAddress: origin.ipAddress,
    userAgent: origin.userAgent,
    allowedBy: null,
    host: null,
    scopes: method === 'sso' ? operator.scopes : null,
    backendScopes: method === 'sso' ? operator.backendScopes : null,
    confirmedUntil: null,
  }
  const caller = operatorCaller(operator, session, await core.store.generation())
  return { actor: { caller, origin }, operator, session, secret, key }
}

function startSteps(
  core: Parts,
  { actor, operator, session }: StartedSession,
  isFirstLogin: boolean,
): Step[] {
  const { id, email, name, scopes, backendScopes, provider, issuer, subject } = operator
  const sso = { provider, issuer, subject }
  const started = {
    operator_id: id,
    session_id: session.id,
    method: session.method,
    ...(session.passkeyId === null ? {} : { passkey_id: session.passkeyId }),
    ...(session.method === 'sso' ? { ...sso, backend_scopes: backendScopes } : {}),
  }
  const created = {
    operator_id: id,
    email,
    name,
    backend_scopes: backendScopes,
    ...(issuer === null ? {} : sso),
  }
  return [
    core.store.sessions.insert(session),
    ...(isFirstLogin ? [audit(core, actor, { action: 'operator.created', scopes, details: created })] : []),
    audit(core, actor, { action: 'session.started', ...(session.scopes && { scopes }), details: started }),
  ]
}
