import { secretsEnd } from '../domain/agent.ts'
import { JWT_TOLERANCE_MS } from '../domain/limits.ts'
import { sessionEnd } from '../domain/people/session.ts'
import { Problem } from '../domain/problems.ts'
import type { Change, Outcome, Step } from '../store/engine/change.ts'
import type { CommitOptions } from '../store/engine/engine.ts'
import type { Actor, AgentCaller, Caller, OperatorCaller } from './caller.ts'
import type { Core } from './context.ts'

/** How often a change is committed again because its agent changed but may still make it. */
const TRIES = 5

/**
 * Commits a change for `actor`. Throws `unauthorized` unless the token or secret that authenticated an agent is still valid
 * at the moment of the commit, or the session of an operator still lives. Throws `conflict` when the operator was changed
 * since the request was authenticated. Throws `store_unavailable` when the store cannot be written,
 * or the `code` given instead. The use case interprets a refused change.
 */
export async function commit(
  core: Pick<Core, 'store'>,
  actor: Actor<Caller | undefined>,
  change: Change,
  options: CommitOptions & { code?: 'audit_unavailable' } = {},
): Promise<Outcome> {
  const { code, ...how } = options
  try {
    return await commitWhileValid(core, actor.caller, change, how)
  } catch (error) {
    if (code === undefined || !(error instanceof Problem) || error.code !== 'store_unavailable') throw error
    const { detail, retryAfterSeconds = 1 } = error
    throw new Problem(code, { cause: error, retryAfterSeconds, detail })
  }
}

async function commitWhileValid(
  core: Pick<Core, 'store'>,
  caller: Caller | undefined,
  change: Change,
  options: CommitOptions,
): Promise<Outcome> {
  if (caller?.kind === 'operator') return commitInSession(core, caller, change, options)
  if (caller?.kind !== 'agent') return core.store.commit(change, options)
  const token = [...whileTokenValid(caller), ...whileRunning(caller, change)]
  let version: number | undefined = caller.version
  for (let tries = 1; tries <= TRIES; tries += 1) {
    if (caller.secretsUntil <= core.store.now()) throw tokenEnded()
    const login = [...token, ...whileVersion(caller, version, change)]
    const outcome = await core.store.commit([...login, ...change], options)
    if (outcome.done) return outcome
    if (outcome.step >= login.length) return { ...outcome, step: outcome.step - login.length }
    if (outcome.step < token.length) throw tokenEnded()
    version = await versionNow(core, caller)
  }
  throw changedMeanwhile()
}

async function commitInSession(
  core: Pick<Core, 'store'>,
  caller: OperatorCaller,
  change: Change,
  options: CommitOptions,
): Promise<Outcome> {
  const { session } = caller
  const { sessions, now } = core.store
  if (sessionEnd(session) <= now()) throw sessionEnded()
  const outcome = await core.store.commit(
    [sessions.requireUnchanged(session), ...withConfirmation(caller, change)],
    options,
  )
  if (outcome.done) return outcome
  if (outcome.step > 0) return { ...outcome, step: outcome.step - 1 }
  throw (await sessions.find(session.id)) === undefined
    ? sessionEnded()
    : changedMeanwhile('Your own rights were changed in the meantime; try again.')
}

/** The first entry of a confirmed act keeps what shows that this person confirmed these bytes. */
function withConfirmation({ confirmation }: OperatorCaller, change: Change): Change {
  if (confirmation === undefined) return change
  const at = change.findIndex((step) => step.op === 'insert' && step.table === 'audit')
  return change.map((step, index) => {
    if (index !== at || step.op !== 'insert' || step.table !== 'audit') return step
    const details = JSON.stringify({ ...JSON.parse(step.row.details ?? '{}'), confirmation })
    return { ...step, row: { ...step.row, details } }
  })
}

/** For a session that has ended, or never was. */
export function sessionEnded(): Problem {
  return new Problem('unauthorized', { message: 'The session has ended; log in again.', invalidToken: true })
}

/** As `commit`, for a change that only a race can refuse: throws `conflict`, so that the client tries again. */
export async function commitOrConflict(
  core: Pick<Core, 'store'>,
  actor: Actor<Caller | undefined>,
  change: Change,
  message: string,
  options: CommitOptions = {},
): Promise<void> {
  const outcome = await commit(core, actor, change, options)
  if (!outcome.done)
    throw new Problem('conflict', { message, detail: `step ${outcome.step}: ${outcome.reason}` })
}

function whileTokenValid(caller: AgentCaller): Step[] {
  if (caller.accessToken === undefined) return []
  const { jti, kid, expiresAt } = caller.accessToken
  return [{ op: 'token', jti, kid, agentId: caller.agentId, expiresAt: expiresAt + JWT_TOLERANCE_MS }]
}

/** As `whileVersion`, no guard for a change that has it, or that ends this run. */
function whileRunning({ run }: AgentCaller, change: Change): Step[] {
  if (run === undefined) return []
  const isOwn = change.some(
    (step) =>
      (step.op === 'guard' && step.table === 'runs' && step.id === run.id) ||
      (step.op === 'invalidate' && step.topic === run.id),
  )
  return isOwn ? [] : [{ op: 'guard', table: 'runs', id: run.id, version: run.version }]
}

/**
 * A rotation of the secrets raises the version of the agent, so at an unchanged version they are still those that the caller
 * was authenticated by. No guard is added to a change that has one, or that ends or alters its own agent: two of these, each
 * with a shared lock on the row that it is about to write, would block each other. Nor for an agent that has ended (no
 * `version`), which the use case interprets.
 */
function whileVersion({ agentId }: AgentCaller, version: number | undefined, change: Change): Step[] {
  const isOwn = change.some(
    (step) =>
      (step.op === 'guard' && step.table === 'agents' && step.id === agentId) ||
      (step.op === 'invalidate' && step.topic === agentId),
  )
  if (version === undefined || isOwn) return []
  return [{ op: 'guard', table: 'agents', id: agentId, version }]
}

/** Undefined when the agent has ended. Throws `unauthorized` when its secrets were replaced. */
async function versionNow(core: Pick<Core, 'store'>, caller: AgentCaller): Promise<number | undefined> {
  const agent = await core.store.agents.findLiving(caller.agentId)
  if (agent !== undefined && secretsEnd(agent, caller.rotation) <= core.store.now()) throw tokenEnded()
  return agent?.version
}

function tokenEnded(): Problem {
  return new Problem('unauthorized', {
    message: 'The token has expired, or was revoked or replaced.',
    invalidToken: true,
  })
}

/**
 * For a change that grants something: it holds only if the caller still lives and is unchanged since authentication. The
 * local host does not end, and every commit of an operator requires it.
 */
export function whileUnchanged({ caller }: Actor): Step[] {
  return caller.kind === 'agent'
    ? [{ op: 'guard', table: 'agents', id: caller.agentId, version: caller.version }]
    : []
}

/** Throws `conflict` when `whileUnchanged` refused the change. The use case interprets other refusals. */
export function requireUnchanged(outcome: Outcome): void {
  if (!outcome.done && outcome.reason === 'guard') throw changedMeanwhile()
}

function changedMeanwhile(message = 'Your own agent was changed in the meantime; try again.'): Problem {
  return new Problem('conflict', { message })
}
