import { Problem } from '../../domain/problems.ts'
import { covers } from '../../domain/scope.ts'
import type { AgentCaller, Caller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'callers' | 'denials' | 'lastUse' | 'meter'>

const BEARER = /^[Bb]earer ([\x21-\x7e]+)$/

/**
 * The caller with this `Authorization` header (RFC 6750 §2.1). Returns without a promise when the caller is cached and
 * the generation is known. Throws `unauthorized`.
 */
export function authenticate(
  core: Parts,
  authorization: string | undefined,
  origin: Origin,
): AgentCaller | Promise<AgentCaller> {
  if (authorization === undefined) throw new Problem('unauthorized')
  const bearer = BEARER.exec(authorization)?.[1]
  if (bearer === undefined) throw refuse(core, origin)
  const generation = core.store.generation()
  const found =
    typeof generation === 'number'
      ? core.callers.find(bearer, generation)
      : generation.then((current) => core.callers.find(bearer, current))
  return found instanceof Promise
    ? found.then((caller) => accept(core, caller, origin))
    : accept(core, found, origin)
}

function accept(core: Parts, caller: AgentCaller | undefined, origin: Origin): AgentCaller {
  if (caller === undefined) throw refuse(core, origin)
  core.lastUse.touch(caller.agentId, core.store.now())
  return caller
}

function refuse(core: Parts, origin: Origin): Problem {
  core.meter.authenticated('bearer', 'failed')
  core.denials.record(undefined, origin, { action: 'auth.failed' })
  return new Problem('unauthorized', {
    message: 'The token is not valid: it is unknown, expired or revoked.',
    invalidToken: true,
  })
}

/** Throws `insufficient_scope` unless the caller is the local host or holds `scope`. */
export function requireScope(
  core: Pick<Core, 'denials'>,
  caller: Caller,
  scope: string,
  origin: Origin,
): void {
  if (caller.kind === 'local' || caller.scopes.some((held) => covers(held, scope))) return
  core.denials.record(caller, origin, {
    action: 'auth.failed',
    details: { reason: 'insufficient_scope', scope },
  })
  throw new Problem('insufficient_scope', { message: `This requires the scope ${scope}.`, scope })
}

/**
 * For requests whose effect would outlive a narrowed token, or that would end the agent with everything it has (ADR 0019,
 * 0021). Throws `insufficient_scope`, without the other scopes of the agent: a narrowed token must not reveal them.
 */
export function requireWhole(core: Pick<Core, 'denials'>, caller: Caller, origin: Origin): void {
  if (caller.kind === 'local' || !caller.isNarrowed) return
  core.denials.record(caller, origin, { action: 'auth.failed', details: { reason: 'narrowed_token' } })
  throw new Problem('insufficient_scope', {
    message: 'This requires a token with all scopes of its agent; log in without naming scopes.',
  })
}

/** For a caller whose agent has ended since it was authenticated. */
export function agentEnded(): Problem {
  return new Problem('unauthorized', { message: 'The agent has ended.', invalidToken: true })
}
