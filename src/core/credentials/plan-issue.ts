import { findParamFaults } from '../../backends/config-fields.ts'
import type { OpenBackend } from '../../backends/open-backends.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import type { Run } from '../../domain/run.ts'
import {
  absoluteScope,
  coversGranted,
  decideGrant,
  heldUntil,
  requireScopes,
  scopeHere,
} from '../../domain/scope.ts'
import { decideLifetime } from '../../domain/ttl.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { grantingBackend } from '../granting-backend.ts'
import type { IdempotencyClaim, IssueCommand, Plan } from './issue-attempt.ts'
import { paramsOf } from './narrow-params.ts'

/** What decides whether somebody may have a credential, and for how long. */
export type Requester = Pick<
  AgentCaller,
  'scopes' | 'bounds' | 'agentExpiresAt' | 'isNarrowed' | 'accessToken' | 'timed'
>

/** Who asks for what, and for which run of theirs. */
interface Asked {
  readonly caller: Requester
  readonly command: IssueCommand
  readonly run?: Run | undefined
}

/** Decides on a request and does nothing. Throws `scope_not_allowed`, `ttl_exceeded` and `invalid_request`. */
export function planIssue(
  core: Pick<Core, 'store' | 'ids'>,
  { caller, command, run }: Asked,
  backend: OpenBackend,
  claim: IdempotencyClaim | undefined,
): Plan {
  const now = core.store.now()
  if (command.scopes !== undefined) requireScopes(command.scopes)
  const { granted: scopes, leftOut } = requireGrant(caller, backend, command.scopes)
  if (!scopes.every((scope) => backend.kind.scopes.valid(scopeHere(backend.name, scope))))
    throw invalid(`A scope is not one of this backend${formsOf(backend.kind)}. ${backend.kind.scopes.help}`)
  const rule = {
    defaultTtlMs: backend.defaultTtlMs,
    maxTtlMs: Math.min(backend.maxTtlMs, backend.kind.limits.maxTtlMs ?? Number.POSITIVE_INFINITY),
    minTtlMs: backend.kind.limits.minTtlMs,
    agentMaxTtlMs: caller.bounds.maxTtlMs,
  }
  const lifetime = decideLifetime(command.ttl, rule, caller.agentExpiresAt, now)
  const params = paramsOf(backend.kind, command)
  const faults = findParamFaults(backend.kind.params, params)
  if (faults.length > 0) throw invalid(`"params" is not valid: ${faults.slice(0, 5).join(' ')}`)
  return {
    id: core.ids.id('credential'),
    scopes,
    leftOut,
    ttlMs: lifetime.ttlMs,
    now,
    expiresAt: Math.min(
      lifetime.expiresAt,
      endOfGrant(caller, backend.name, scopes),
      run?.expiresAt ?? Number.POSITIVE_INFINITY,
    ),
    params,
    claim,
    run,
  }
}

const MOST_SHOWN = 12

export function formsOf({ scopes: { forms } }: OpenBackend['kind']): string {
  return forms.length === 0
    ? ''
    : `, which takes ${forms
        .slice(0, MOST_SHOWN)
        .map(({ form }) => form)
        .join(', ')}`
}

const REFUSALS = {
  no_scope_here: 'Your scopes do not include this backend.',
  agent: 'A requested scope is not among your scopes.',
  backend: 'A requested scope is not permitted on this backend.',
  never_given: 'This backend can give none of your scopes.',
} as const

/** Throws `scope_not_allowed`. */
function requireGrant(caller: Requester, backend: OpenBackend, requested: readonly string[] | undefined) {
  const grant = decideGrant(grantingBackend(backend), caller.scopes, requested)
  if ('refused' in grant) throw new Problem('scope_not_allowed', { message: REFUSALS[grant.refused] })
  return grant
}

/** For a credential that was issued before. Throws `scope_not_allowed` unless the caller holds all that it grants. */
export function requireStillGranted(
  { scopes }: AgentCaller,
  backend: OpenBackend,
  granted: readonly string[],
): void {
  if (!coversGranted(backend.name, scopes, granted))
    throw new Problem('scope_not_allowed', { message: REFUSALS.agent })
}

/**
 * Extra scopes run out by themselves (decisions.md §5.5), and so do the credentials that they allowed. A credential for
 * a narrowed token ends with the token (ADR 0021).
 */
function endOfGrant(caller: Requester, backend: string, granted: readonly string[]): number {
  const tokenEnds =
    (caller.isNarrowed ? caller.accessToken?.expiresAt : undefined) ?? Number.POSITIVE_INFINITY
  if (caller.timed.length === 0) return tokenEnds
  const absolute = granted.map((scope) => absoluteScope(backend, scope))
  return Math.min(tokenEnds, heldUntil(caller.timed, absolute))
}
