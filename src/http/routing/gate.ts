import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import type { RouteRule } from '../../api/routes.ts'
import { authenticate, requireScope } from '../../core/authentication/authenticate.ts'
import type { Actor, LocalCaller, OperatorCaller } from '../../core/caller.ts'
import type { Core } from '../../core/context.ts'
import { requireNoRun } from '../../core/require-whole.ts'
import { authenticateCommand, commandToken } from '../../core/sessions/authenticate-session.ts'
import { Problem } from '../../domain/problems.ts'
import type { LocalVerdict } from '../server/local-host.ts'
import { originOf } from './origin.ts'
import { confirmed, cookieActor, isNavigation, namesSession, sessionActor } from './session-request.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the gate of the route; undefined on public ones. */
    actor: Actor | undefined
    /** Whether the body had arrived when the caller was admitted. */
    admittedWhole: boolean
  }
}

export interface GateParts {
  readonly core: Core
  readonly localHost: (request: IncomingMessage) => LocalVerdict | Promise<LocalVerdict>
  /** Whether `admin.sock` accepted the connection; the listener knows, a missing address proves nothing. */
  readonly isUnixSocket: (socket: object) => boolean
}

export type GateHook = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/** The hooks of one rule. */
export interface RuleGate {
  /** Runs before the body is read; synchronously if the caller is cached. */
  readonly before: GateHook
  /**
   * Runs after the body is read. A body may arrive ten seconds after its headers; an agent or token that ended
   * meanwhile is refused.
   */
  readonly after: GateHook
  /** Runs once the body is valid; undefined where an operator has nothing to confirm. */
  readonly confirm: GateHook | undefined
  /** Runs before the reply is sent; undefined where it has nothing to do. */
  readonly answered: ((request: FastifyRequest, reply: FastifyReply) => void) | undefined
}

export type Gate = (rule: RouteRule) => RuleGate

export function createGate(parts: GateParts): Gate {
  const { core } = parts
  return (rule) => {
    const admits = rule.access === 'admin' || rule.access === 'reader'
    const before: GateHook = (request, _reply, done) => {
      try {
        const other = admits || rule.access === 'session' ? actorBeside(parts, rule, request) : undefined
        const actor = other ?? authenticate(core, request.headers.authorization, originOf(request))
        if (!(actor instanceof Promise)) {
          admit(core, rule, actor, request)
          done()
          return
        }
        actor.then((found) => admit(core, rule, found, request)).then(() => done(), done)
      } catch (error) {
        done(error as Error)
      }
    }
    return {
      before,
      after: (request, reply, done) => admitAgain(core, before, request, reply, done),
      confirm:
        rule.confirm === true ? (request, _reply, done) => confirmFirst(core, request, done) : undefined,
      answered:
        admits && rule.audit !== undefined
          ? (request, reply) => recordFailedAct(core, rule, request, reply.statusCode)
          : undefined,
    }
  }
}

function admit(core: Core, rule: RouteRule, actor: Actor, request: FastifyRequest): void {
  if (rule.access === 'admin' && rule.scope !== undefined) requireScope(core, actor, rule.scope)
  if (rule.audit !== undefined && rule.ofRun !== true) requireNoRun(core, actor)
  request.actor = actor
  request.admittedWhole = request.raw.complete
}

/** Authenticates again only if the body came later and the caller has changed or ended since, which is rare. */
function admitAgain(
  core: Core,
  before: GateHook,
  request: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  const caller = request.actor?.caller
  if (request.admittedWhole || caller === undefined || caller.kind === 'local') {
    done()
    return
  }
  if (caller.kind === 'operator') {
    before(request, reply, done)
    return
  }
  const compare = () => {
    if (core.callers.isCurrent(caller)) done()
    else before(request, reply, done)
  }
  const generation = core.store.generation()
  if (typeof generation === 'number') compare()
  // If the store cannot be read, `before` answers with the right error.
  else generation.then(compare, () => before(request, reply, done))
}

function confirmFirst(core: Core, request: FastifyRequest, done: HookHandlerDoneFunction): void {
  const { actor } = request
  if (actor?.caller.kind !== 'operator') {
    done()
    return
  }
  confirmed(core, request, actor as Actor<OperatorCaller>)
    .then((found) => {
      request.actor = found
    })
    .then(() => done(), done)
}

/** The actor by session, token of a command, local host or the administrators' socket; undefined for an agent's bearer. */
function actorBeside(parts: GateParts, rule: RouteRule, request: FastifyRequest): Promise<Actor> | undefined {
  if (rule.access === 'session') return sessionActor(parts.core, request)
  const token = commandToken(request.headers.authorization)
  if (token !== undefined) return authenticateCommand(parts.core, token, originOf(request))
  if (request.headers.authorization !== undefined) return undefined
  if (namesSession(request) && !parts.isUnixSocket(request.raw.socket))
    return sessionActor(parts.core, request)
  if (rule.byCookie === true && isNavigation(parts.core, request)) return cookieActor(parts.core, request)
  if (parts.isUnixSocket(request.raw.socket)) return enter(parts, rule, 'unix_socket', request)
  return askLocalHost(parts, rule, request)
}

async function askLocalHost(parts: GateParts, rule: RouteRule, request: FastifyRequest): Promise<Actor> {
  const verdict = await parts.localHost(request.raw)
  if (verdict === 'misdirected') throw new Problem('misdirected_request')
  if (verdict === 'not_local') throw new Problem('unauthorized')
  return enter(parts, rule, 'loopback', request)
}

/**
 * A change records itself, in its own transaction (decisions.md §7.1). A read that needs an admin scope is recorded before
 * it takes effect; what every agent may read needs no record (ADR 0032).
 */
async function enter(
  parts: GateParts,
  rule: RouteRule,
  method: LocalCaller['method'],
  request: FastifyRequest,
): Promise<Actor> {
  const { core } = parts
  const caller: LocalCaller = { kind: 'local', method, generation: await core.store.generation() }
  const actor = { caller, origin: originOf(request) }
  if (rule.audit === undefined && rule.scope !== undefined)
    await core.localReads.record(actor, accessOf(rule, request))
  return actor
}

/** A change by the local host that was refused, or that failed, and so has no entry of its own. */
function recordFailedAct(core: Core, rule: RouteRule, request: FastifyRequest, status: number): void {
  const { actor } = request
  if (actor?.caller.kind !== 'local' || status < 400) return
  core.denials.record(actor, {
    action: 'admin.local_access',
    outcome: status < 500 ? 'denied' : 'failed',
    details: { ...accessOf(rule, request), code: status },
  })
}

function accessOf(rule: RouteRule, request: FastifyRequest) {
  const route = `${request.method} ${request.routeOptions.url ?? ''}`
  return rule.scope === undefined ? { route } : { route, scope: rule.scope }
}
