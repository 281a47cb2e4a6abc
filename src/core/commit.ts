import { JWT_TOLERANCE_MS } from '../domain/limits.ts'
import { Problem } from '../domain/problems.ts'
import type { Change, Outcome, Step } from '../store/engine/change.ts'
import type { CommitOptions } from '../store/engine/engine.ts'
import type { Actor, Caller } from './caller.ts'
import type { Core } from './context.ts'

/**
 * Commits what `actor` wants. A caller with an access token succeeds only while the token is valid, at the moment of the
 * commit: otherwise throws `unauthorized`. Throws `store_unavailable` when the store cannot be written, or the `code` given
 * instead. The use case interprets a refused change.
 */
export async function commit(
  core: Pick<Core, 'store'>,
  actor: Actor<Caller | undefined>,
  change: Change,
  options: CommitOptions & { code?: 'audit_unavailable' } = {},
): Promise<Outcome> {
  const token = whileTokenValid(actor)
  try {
    const outcome = await core.store.commit([...token, ...change], options)
    if (outcome.done || token.length === 0) return outcome
    if (outcome.step === 0) throw tokenEnded()
    return { ...outcome, step: outcome.step - 1 }
  } catch (error) {
    const { code } = options
    if (code === undefined || !(error instanceof Problem) || error.code !== 'store_unavailable') throw error
    const { detail, retryAfterSeconds = 1 } = error
    throw new Problem(code, { cause: error, retryAfterSeconds, ...(detail === undefined ? {} : { detail }) })
  }
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

function whileTokenValid({ caller }: Actor<Caller | undefined>): Step[] {
  if (caller?.kind !== 'agent' || caller.accessToken === undefined) return []
  const { jti, kid, expiresAt } = caller.accessToken
  return [{ op: 'token', jti, kid, agentId: caller.agentId, expiresAt: expiresAt + JWT_TOLERANCE_MS }]
}

function tokenEnded(): Problem {
  return new Problem('unauthorized', { message: 'The token has expired or was revoked.', invalidToken: true })
}

/**
 * For a change that grants something: it holds only if the caller still lives and is unchanged since authentication. The
 * local host does not end.
 */
export function whileUnchanged({ caller }: Actor): Step[] {
  return caller.kind === 'agent'
    ? [{ op: 'guard', table: 'agents', id: caller.agentId, version: caller.version }]
    : []
}

/** Throws `conflict` when `whileUnchanged` refused the change. The use case interprets other refusals. */
export function requireUnchanged(outcome: Outcome): void {
  if (!outcome.done && outcome.reason === 'guard')
    throw new Problem('conflict', { message: 'Your own agent was changed in the meantime; try again.' })
}
