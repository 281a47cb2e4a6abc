import { findGuarded } from '../../backends/config-fields.ts'
import type { Kind } from '../../backends/kind.ts'
import { Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'denials'>

/** The local host, and agents and operators that hold every admin scope: they may do what reaches beyond one backend. */
export function isFullAdministrator({ caller }: Actor): boolean {
  return caller.kind === 'local' || coversAny(caller.scopes, 'admin:*')
}

/**
 * For a change by which the caller could obtain what the backend gives: requires the right to all of it (ADR 0022).
 * Throws `insufficient_scope`.
 */
export function requireWholeBackend(core: Parts, actor: Actor, name: string): void {
  const { caller } = actor
  if (isFullAdministrator(actor) || (caller.kind !== 'local' && coversAny(caller.scopes, `${name}:*`))) return
  const message =
    'In addition to admin:backends:write, this requires a scope that covers the whole backend: its name.'
  throw refuse(core, actor, { reason: 'backend_not_held', scope: name, message })
}

/** For a configuration that reaches beyond the backend. Throws `insufficient_scope`, which names the field. */
export function requireUnguarded(
  core: Parts,
  actor: Actor,
  kind: Kind,
  config: Readonly<Record<string, unknown>>,
): void {
  const field = findGuarded(kind.config, config)
  if (field === undefined || isFullAdministrator(actor)) return
  const message = `A configuration that sets "${field}" this way reaches beyond its backend. Only the local host and holders of admin:* may store it.`
  throw refuse(core, actor, { reason: 'guarded_field', scope: 'admin:*', message })
}

/** Storing it untried would let its issues show what the trial hides. Throws `insufficient_scope`. */
export function requireTrial(core: Parts, actor: Actor, check: boolean): void {
  if (check || isFullAdministrator(actor)) return
  const message = 'Only the local host and holders of admin:* may store a configuration untried.'
  throw refuse(core, actor, { reason: 'untried', scope: 'admin:*', message })
}

/** For rules that name where the secrets of a backend may go. Throws `insufficient_scope`. */
export function requireUsePower(core: Parts, actor: Actor): void {
  if (isFullAdministrator(actor)) return
  const message = 'Only the local host and holders of admin:* may set "uses": it names where secrets go.'
  throw refuse(core, actor, { reason: 'uses', scope: 'admin:*', message })
}

function refuse(
  core: Parts,
  actor: Actor,
  { reason, scope, message }: { readonly reason: string; readonly scope: string; readonly message: string },
): Problem {
  core.denials.record(actor, { action: 'auth.failed', details: { reason, scope } })
  return new Problem('insufficient_scope', { message, scope })
}
