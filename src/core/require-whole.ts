import { Problem } from '../domain/problems.ts'
import type { Actor } from './caller.ts'
import type { Core } from './context.ts'

/**
 * For requests whose effect would outlive a narrowed token or the run of one, or that would end the agent with everything it has (ADR 0019,
 * 0021). Throws `insufficient_scope`, without the other scopes of the agent: a narrowed token must not reveal them.
 */
export function requireWhole(core: Pick<Core, 'denials'>, actor: Actor): void {
  const { caller } = actor
  if (caller.kind !== 'agent') return
  requireNoRun(core, actor)
  if (!caller.isNarrowed) return
  core.denials.record(actor, { action: 'auth.failed', details: { reason: 'narrowed_token' } })
  throw new Problem('insufficient_scope', {
    message: 'This requires a token with all scopes of its agent; log in without naming scopes.',
  })
}

/** A token that was made for a run changes nothing that outlasts it. Throws `insufficient_scope`. */
export function requireNoRun(core: Pick<Core, 'denials'>, actor: Actor): void {
  const { caller } = actor
  if (caller.kind !== 'agent' || caller.run === undefined) return
  core.denials.record(actor, { action: 'auth.failed', details: { reason: 'token_of_run' } })
  throw new Problem('insufficient_scope', {
    message: 'The token of a run changes nothing that outlasts the run; use a token without `run`.',
  })
}
