import { INVITATION_MS, LOGIN_LINK_MS, NAMING_MS } from '../../domain/limits.ts'
import { type Operator, requireEmail, requireShownName } from '../../domain/people/operator.ts'
import type { LoginLink } from '../../domain/people/session.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { isLoginSecret, mintLoginSecret } from '../../keys/login-secrets.ts'
import { sha256 } from '../../keys/webauthn.ts'
import type { Step } from '../../store/engine/change.ts'
import { actorId, audit } from '../audit/entry.ts'
import type { Actor, Caller, Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { countFailure, requireLoginRate } from './login-limits.ts'
import { type StartedSession, startFirstSession, startSession } from './start-session.ts'

type Parts = Pick<Core, 'store' | 'hasher' | 'ids' | 'rates' | 'settings' | 'denials' | 'meter'>

/** A link for one login. Its secret is in the fragment, which no browser sends. */
export interface MadeLink {
  readonly url: string
  /** Whom it logs in; undefined: the person who opens it first becomes the first operator. */
  readonly operator: Operator | undefined
  readonly expiresAt: number
}

/** `meta` has the id of the operator whom the first link made. */
const FIRST = 'first_operator'
const LIFETIME = { login: LOGIN_LINK_MS, first: LOGIN_LINK_MS, naming: NAMING_MS, invitation: INVITATION_MS }

/**
 * A link for `operator`, or for the one whom the first link made; while there is none, a link that makes one. Only the
 * server's own machine may ask, over its socket. Throws `not_allowed`, `operator_not_found`, and `not_found` where the
 * console is off.
 */
export async function makeLoginLink(
  core: Parts,
  actor: Actor,
  named: Operator | undefined,
): Promise<MadeLink> {
  const { caller } = actor
  if (caller.kind !== 'local' || caller.method === 'loopback') {
    if (caller.kind !== 'local')
      core.denials.record(actor, { action: 'auth.failed', details: { reason: 'link_over_network' } })
    throw new Problem('not_allowed', {
      message:
        "Links for a login are made only on the server's machine, over its admin.sock and without a token: run mayfly console there.",
    })
  }
  if (core.settings.console === 'off')
    throw new Problem('not_found', { message: 'This server has no console: its setting console is off.' })
  const operator = named ?? (await findFirst(core))
  const kind = operator === undefined ? 'first' : 'login'
  const link = newLink(core, actor, kind, operator?.id ?? null)
  await commit(core, actor, [
    link.step,
    audit(core, actor, {
      action: 'operator.link_made',
      details: { kind, operator_id: operator?.id, email: operator?.email },
    }),
  ])
  return { url: link.url, operator, expiresAt: link.expiresAt }
}

async function findFirst({ store }: Parts): Promise<Operator | undefined> {
  const id = await store.meta.get(FIRST)
  return id === undefined ? undefined : store.operators.findLiving(id)
}

/** A new link, with the step that keeps the hash of its secret. */
export function newLink(
  core: Pick<Core, 'store' | 'hasher' | 'settings'>,
  actor: Actor<Caller | undefined>,
  kind: LoginLink['kind'],
  operatorId: string | null,
): { readonly secret: string; readonly url: string; readonly expiresAt: number; readonly step: Step } {
  const secret = mintLoginSecret('link')
  const now = core.store.now()
  const expiresAt = now + LIFETIME[kind]
  const step = core.store.sessions.addLink({
    secretHash: core.hasher.hash(secret),
    kind,
    operatorId,
    createdAt: now,
    createdBy: actorId(actor),
    expiresAt,
  })
  return { secret, url: `${core.settings.relyingParty.consoleUrl}#link=${secret}`, expiresAt, step }
}

/** What the page sends: the secret of the link, and for the first operator who they are. */
export interface PresentedLink {
  readonly link: string
  readonly email?: string | undefined
  readonly name?: string | undefined
}

/** The link was good, and this secret now makes the first operator, with a name and an e-mail address. */
export interface NameNeeded {
  readonly link: string
  readonly expiresAt: number
}

/** Throws `unauthorized` for a link that is unknown, used or too old, `rate_limited`, `invalid_request` and `conflict`. */
export async function logInByLink(
  core: Parts,
  presented: PresentedLink,
  origin: Origin,
): Promise<StartedSession | NameNeeded> {
  const subject = `link ${sha256(presented.link)}`
  requireLoginRate(core, subject, origin.ipAddress)
  const link = await findLink(core, presented.link)
  const done = link === undefined ? undefined : await follow(core, link, presented, origin)
  if (done !== undefined) return done
  countFailure(core, subject, { caller: undefined, origin }, 'login_link')
  throw new Problem('unauthorized', {
    message: 'This link was used already, or is too old. Make another: run mayfly console on the server.',
  })
}

async function findLink({ store, hasher }: Parts, secret: string): Promise<LoginLink | undefined> {
  if (!isLoginSecret('link', secret)) return undefined
  const link = await store.sessions.findLink(hasher.hash(secret))
  return link === undefined || link.expiresAt <= store.now() ? undefined : link
}

/** Undefined when the link was used in the meantime, or its operator has ended. */
function follow(
  core: Parts,
  link: LoginLink,
  presented: PresentedLink,
  origin: Origin,
): Promise<StartedSession | NameNeeded | undefined> {
  const isNamed = presented.email !== undefined || presented.name !== undefined
  if (link.kind === 'naming') return makeFirst(core, link, presented, origin)
  if (isNamed) throw invalid('"email" and "name" are only for the link that makes the first operator.')
  if (link.kind === 'first') return askForName(core, link, origin)
  const method = link.kind === 'login' ? 'link' : 'invitation'
  const steps = [core.store.sessions.useLink(link.secretHash)]
  return startSession(core, link.operatorId ?? '', { method, steps }, origin)
}

/** The link is used up; typing may take longer than its minute. */
async function askForName(core: Parts, link: LoginLink, origin: Origin): Promise<NameNeeded | undefined> {
  const { secret, expiresAt, step } = newLink(core, { caller: undefined, origin }, 'naming', null)
  const outcome = await core.store.commit([core.store.sessions.useLink(link.secretHash), step])
  return outcome.done ? { link: secret, expiresAt } : undefined
}

async function makeFirst(
  core: Parts,
  link: LoginLink,
  { email, name }: PresentedLink,
  origin: Origin,
): Promise<StartedSession | undefined> {
  if (email === undefined || name === undefined) throw invalid('"email" and "name" are needed.')
  const operator = firstOperator(core, requireEmail(email), name)
  const known = await core.store.meta.get(FIRST)
  if (known !== undefined && (await core.store.operators.findLiving(known)) !== undefined) throw isFirst()
  const { meta, operators, sessions } = core.store
  const steps = [
    sessions.useLink(link.secretHash),
    known === undefined ? meta.add(FIRST, operator.id) : meta.replace(FIRST, known, operator.id),
    operators.insert(operator),
  ]
  const { started, outcome } = await startFirstSession(core, operator, { method: 'link', steps }, origin)
  if (outcome.done) return started
  if (outcome.step === 1) throw isFirst()
  if (outcome.step === 2)
    throw new Problem('conflict', { message: 'There is an operator with this address.' })
  return undefined
}

function firstOperator({ store, ids }: Parts, email: string, name: string): Operator {
  requireShownName(name)
  const now = store.now()
  return {
    id: ids.id('operator'),
    email,
    name,
    scopes: ['admin:*'],
    backendScopes: ['*'],
    version: 1,
    logins: 1,
    createdAt: now,
    createdBy: 'local',
    joinedAt: now,
    lastLoginAt: now,
    endedAt: null,
    provider: null,
    issuer: null,
    subject: null,
  }
}

const isFirst = () =>
  new Problem('conflict', {
    message: 'Somebody else has become the first operator. For a link of your own, run mayfly console again.',
  })
