import { Problem } from '../../domain/problems.ts'
import { covers } from '../../domain/scope.ts'
import type { AgentCaller, Caller, Origin } from '../caller.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'callers' | 'denials' | 'lastUse' | 'meter'>

const BEARER = /^[Bb]earer ([\x21-\x7e]+)$/

/**
 * Who presents this `Authorization` header (RFC 6750 §2.1). Answers at once where the caller is known already
 * and the store need not be asked. Throws `unauthorized`.
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
  if (typeof generation !== 'number') return awaited(core, bearer, generation, origin)
  const found = core.callers.find(bearer, generation)
  return isPromise(found) ? found.then((caller) => accept(core, caller, origin)) : accept(core, found, origin)
}

async function awaited(
  core: Parts,
  bearer: string,
  generation: Promise<number>,
  origin: Origin,
): Promise<AgentCaller> {
  return accept(core, await core.callers.find(bearer, await generation), origin)
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

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return value instanceof Promise
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
  throw new Problem('insufficient_scope', { message: `This needs the scope ${scope}.`, scope })
}

/**
 * For what would outlive a narrowed token, or end the agent with all that it has (ADR 0019). Throws
 * `insufficient_scope`, which does not say what the agent holds besides: a narrowed token does not show that.
 */
export function requireWhole(core: Pick<Core, 'denials'>, caller: AgentCaller, origin: Origin): void {
  if (!caller.isNarrowed) return
  core.denials.record(caller, origin, { action: 'auth.failed', details: { reason: 'narrowed_token' } })
  throw new Problem('insufficient_scope', {
    message: 'This needs a token with all scopes of its agent: log in for one without naming any.',
  })
}

/** For who was admitted, and has ended since. */
export function agentEnded(): Problem {
  return new Problem('unauthorized', { message: 'The agent has ended.', invalidToken: true })
}
