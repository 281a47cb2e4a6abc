import { Problem } from '../domain/problems.ts'
import type { Change, Outcome, Step } from '../store/engine/change.ts'
import type { CommitOptions } from '../store/engine/engine.ts'
import { StoreError } from '../store/errors.ts'
import type { Caller } from './caller.ts'
import type { Core } from './context.ts'

export function isStoreError(error: unknown): error is StoreError {
  return error instanceof StoreError
}

/**
 * Commits. Throws `store_unavailable` when the store cannot be written (`audit_unavailable` for an issue). The caller
 * interprets a refused change.
 */
export async function commit(
  core: Pick<Core, 'store'>,
  change: Change,
  options: CommitOptions & { code?: 'store_unavailable' | 'audit_unavailable' } = {},
): Promise<Outcome> {
  try {
    return await core.store.commit(change, options)
  } catch (cause) {
    if (!isStoreError(cause)) throw cause
    throw new Problem(options.code ?? 'store_unavailable', {
      detail: cause.message,
      cause,
      retryAfterSeconds: 1,
    })
  }
}

/** As `commit`, for a change that only a race can refuse: throws `conflict`, so that the client tries again. */
export async function commitOrConflict(
  core: Pick<Core, 'store'>,
  change: Change,
  message: string,
  options: CommitOptions = {},
): Promise<void> {
  const outcome = await commit(core, change, options)
  if (!outcome.done)
    throw new Problem('conflict', { message, detail: `step ${outcome.step}: ${outcome.reason}` })
}

/**
 * For a change that grants something: it holds only if the caller still lives and is unchanged since authentication. The
 * local host does not end.
 */
export function whileUnchanged(caller: Caller): Step[] {
  return caller.kind === 'agent'
    ? [{ op: 'guard', table: 'agents', id: caller.agentId, version: caller.version }]
    : []
}

/** Throws `conflict` when `whileUnchanged` refused the change. The use case interprets other refusals. */
export function requireUnchanged(outcome: Outcome): void {
  if (!outcome.done && outcome.reason === 'guard')
    throw new Problem('conflict', { message: 'Your own agent was changed in the meantime; try again.' })
}
