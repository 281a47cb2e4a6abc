import { DEFAULT_PAGE, SESSION_IDLE_MS } from '../../domain/limits.ts'
import type { Operator } from '../../domain/people/operator.ts'
import { type Session, sessionEnd } from '../../domain/people/session.ts'
import { Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import { requireScope } from '../authentication/authenticate.ts'
import { type Actor, type Caller, type OperatorCaller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'denials'>
/** Why a session ended, as its entry has it. */
export type SessionEnd =
  | 'logout'
  | 'ended'
  | 'expired'
  | 'idle'
  | 'too_many'
  | 'operator_deleted'
  | 'passkey_removed'
  /** Of a command: the session that allowed it was ended. */
  | 'allowed_by_ended'
  /** Of a command: its authorization code came a second time. */
  | 'code_used_again'

const READ = 'admin:operators:read'
const WRITE = 'admin:operators:write'

/** A session as lists show it. */
export interface SessionView extends Session {
  readonly email: string | null
  /** Whether it is that of the caller. */
  readonly isOwn: boolean
}

/** All living sessions, or those of one operator; an operator without `admin:operators:read` sees their own. */
export async function listSessions(
  core: Parts,
  actor: Actor,
  { operatorId, cursor, limit = DEFAULT_PAGE }: PageQuery & { readonly operatorId?: string | undefined },
): Promise<Page<SessionView>> {
  const { caller } = actor
  const own = caller.kind === 'operator' ? caller.operatorId : undefined
  const seesAll = caller.kind === 'local' || coversAny(caller.scopes, READ)
  if (!seesAll && (own === undefined || (operatorId ?? own) !== own)) requireScope(core, actor, READ)
  const rows = await core.store.sessions.list(seesAll ? operatorId : own, cursor, limit + 1)
  const now = core.store.now()
  const page = pageOf(rows, limit, ({ id }) => id)
  const emails = new Map<string, string | null>()
  for (const { operatorId: id } of page.items)
    if (!emails.has(id)) emails.set(id, (await core.store.operators.findLiving(id))?.email ?? null)
  const items = page.items
    .filter((one) => sessionEnd(one) > now)
    .map((one) => ({
      ...one,
      email: emails.get(one.operatorId) ?? null,
      isOwn: caller.kind === 'operator' && caller.session.id === one.id,
    }))
  return { ...page, items }
}

/**
 * The steps that end these sessions, and with each the commands that it allowed: `all` has the sessions of their operator.
 * Refused when one of them has ended, or has allowed another command since: a login of a command holds the session that
 * allows it until it is there.
 */
export function endSteps(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor<Caller | undefined>,
  ended: readonly Session[],
  { all, operator }: { readonly all: readonly Session[]; readonly operator: Operator | undefined },
  reason: SessionEnd,
): Step[] {
  const ids = new Set(ended.map(({ id }) => id))
  const goesWith = ({ allowedBy }: Session) => allowedBy !== null && ids.has(allowedBy)
  const { end, endAllowedBy } = core.store.sessions
  return [
    ...ended
      .filter((one) => !goesWith(one))
      .flatMap(({ id }) => [end(id), endAllowedBy(id, all.filter((one) => one.allowedBy === id).length)]),
    ...ended.map((one) => endEntry(core, actor, one, operator, reason)),
    ...all
      .filter((one) => goesWith(one) && !ids.has(one.id))
      .map((one) => endEntry(core, actor, one, operator, 'allowed_by_ended')),
  ]
}

export function endEntry(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor<Caller | undefined>,
  { id, operatorId }: Session,
  operator: Pick<Operator, 'email'> | undefined,
  reason: SessionEnd,
): Step {
  const details = { operator_id: operatorId, email: operator?.email, session_id: id, reason }
  return audit(core, actor, { action: 'session.ended', details })
}

/** Ends the session of the caller. */
export async function logOut(core: Parts, actor: Actor<OperatorCaller>): Promise<void> {
  await end(core, actor, actor.caller.session, 'logout')
}

/** Throws `not_found`, and `insufficient_scope` for a session of another operator without `admin:operators:write`. */
export async function endSession(core: Parts, actor: Actor, id: string): Promise<void> {
  const session = await core.store.sessions.find(id)
  const { caller } = actor
  if (caller.kind !== 'operator' || session?.operatorId !== caller.operatorId)
    requireScope(core, actor, WRITE)
  if (session === undefined) throw new Problem('not_found', { message: 'There is no such session.' })
  await end(core, actor, session, 'ended')
}

/** All sessions of an operator. Returns how many. Throws `insufficient_scope`. */
export async function endSessionsOf(
  core: Parts,
  actor: Actor,
  { id }: Pick<Operator, 'id'>,
): Promise<number> {
  const { caller } = actor
  if (caller.kind !== 'operator' || caller.operatorId !== id) requireScope(core, actor, WRITE)
  return endSome(core, actor, id, 'ended', () => true)
}

/** With the commands that it allowed. Does nothing when it has ended already. */
async function end(
  core: Parts,
  actor: Actor,
  { id, operatorId }: Session,
  reason: SessionEnd,
): Promise<void> {
  await endSome(core, actor, operatorId, reason, (one) => one.id === id)
}

const TRIES = 5

/** In one change, which the caller's own session allows even where it is among them. Returns how many `which` means. */
async function endSome(
  core: Parts,
  actor: Actor,
  operatorId: string,
  reason: SessionEnd,
  which: (session: Session) => boolean,
): Promise<number> {
  const { store } = core
  const operator = await store.operators.findLiving(operatorId)
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const all = await store.sessions.of(operatorId)
    const ended = all.filter(which)
    if (ended.length === 0) return 0
    const steps = endSteps(core, actor, ended, { all, operator }, reason)
    if ((await commit(core, actor, steps, { urgent: true })).done) return ended.length
  }
  throw new Problem('conflict', { message: 'Sessions of this operator begin at the same time; try again.' })
}

const AT_ONCE = 100

/** Ends sessions that have expired, or that nobody uses any more. Returns whether more are left. */
export async function expireSessions(core: Pick<Core, 'store' | 'ids'>): Promise<boolean> {
  const { store } = core
  const now = store.now()
  const idleSince = now - SESSION_IDLE_MS
  const expired = await store.sessions.expired(now, idleSince, AT_ONCE)
  for (const session of expired) {
    const operator = await store.operators.findLiving(session.operatorId)
    const reason = session.expiresAt <= now ? 'expired' : 'idle'
    await store.commit([
      store.sessions.expire(session.id, now, idleSince),
      endEntry(core, SYSTEM, session, operator, reason),
    ])
  }
  return expired.length === AT_ONCE
}
