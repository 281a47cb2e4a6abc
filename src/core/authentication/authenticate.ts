import { Problem } from '../../domain/problems.ts'
import { covers } from '../../domain/scope.ts'
import type { Actor, AgentCaller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'callers' | 'denials' | 'lastUse' | 'meter'>

const BEARER = /^[Bb]earer ([\x21-\x7e]+)$/

/**
 * The actor with this `Authorization` header (RFC 6750 §2.1). Returns without a promise when the caller is cached and
 * the generation is known. Throws `unauthorized`.
 */
export function authenticate(
  core: Parts,
  authorization: string | undefined,
  origin: Origin,
): Actor<AgentCaller> | Promise<Actor<AgentCaller>> {
  if (authorization === undefined) throw new Problem('unauthorized')
  const bearer = BEARER.exec(authorization)?.[1]
  if (bearer === undefined) throw refuseBearer(core, origin)
  const generation = core.store.generation()
  const found =
    typeof generation === 'number'
      ? core.callers.find(bearer, generation)
      : generation.then((current) => core.callers.find(bearer, current))
  return found instanceof Promise
    ? found.then((caller) => accept(core, caller, origin))
    : accept(core, found, origin)
}

function accept(core: Parts, caller: AgentCaller | undefined, origin: Origin): Actor<AgentCaller> {
  if (caller === undefined) throw refuseBearer(core, origin)
  core.lastUse.touch(caller.agentId, { at: core.store.now(), from: origin.ipAddress })
  return { caller, origin }
}

/** Records the failure and returns the answer, which is the same for every bad token. */
export function refuseBearer(core: Pick<Parts, 'denials' | 'meter'>, origin: Origin): Problem {
  core.meter.authenticated('bearer', 'failed')
  core.denials.record({ caller: undefined, origin }, { action: 'auth.failed' })
  return new Problem('unauthorized', {
    message: 'The token is not valid: it is unknown, expired or revoked.',
    invalidToken: true,
  })
}

/** Throws `insufficient_scope` unless the caller is the local host or holds `scope`. */
export function requireScope(core: Pick<Core, 'denials'>, actor: Actor, scope: string): void {
  const { caller } = actor
  if (caller.kind === 'local' || caller.scopes.some((held) => covers(held, scope))) return
  core.denials.record(actor, {
    action: 'auth.failed',
    details: { reason: 'insufficient_scope', scope },
  })
  throw new Problem('insufficient_scope', { message: `This requires the scope ${scope}.`, scope })
}

/** For a caller whose agent has ended since it was authenticated. */
export function agentEnded(): Problem {
  return new Problem('unauthorized', {
    message: 'The agent has ended, or the run of the token.',
    invalidToken: true,
  })
}
