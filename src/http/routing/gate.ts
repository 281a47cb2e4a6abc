import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { audit } from '../../core/audit/entry.ts'
import { authenticate, requireScope } from '../../core/authentication/authenticate.ts'
import type { Caller, LocalCaller, Origin } from '../../core/caller.ts'
import { commit } from '../../core/commit.ts'
import type { Core } from '../../core/context.ts'
import { Problem } from '../../domain/problems.ts'
import type { LocalVerdict } from '../server/local-host.ts'
import { originOf } from './origin.ts'
import type { RouteRule } from './route-table.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the gate of the route; undefined on public ones. */
    caller: Caller | undefined
    /** See `originOf`, which reads it once. */
    origin: Origin | undefined
    /** Whether the body was here, too, when the caller was admitted. */
    admittedWhole: boolean
  }
}

export interface GateParts {
  readonly core: Core
  readonly localHost: (request: IncomingMessage) => LocalVerdict | Promise<LocalVerdict>
  /** Whether our own unix socket accepted it: known from the listener, never guessed from a missing address. */
  readonly isUnixSocket: (socket: object) => boolean
  /** Hex of 256 bits, from the file `admin.token`; new at each start. */
  readonly adminToken: string
}

export type GateHook = (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction) => void

/** The hooks of one rule. */
export interface RuleGate {
  /** Runs before the body is read, and at once where the caller is known. */
  readonly before: GateHook
  /**
   * Runs when it has been read. A body may come ten seconds after its headers: who was ended meanwhile, or whose
   * token was, does nothing any more.
   */
  readonly after: GateHook
}

export type Gate = (rule: RouteRule) => RuleGate

export function createGate(parts: GateParts): Gate {
  const { core } = parts
  return (rule) => {
    const admits = rule.access === 'admin' || rule.access === 'reader'
    const before: GateHook = (request, _reply, done) => {
      try {
        const local = admits ? localCaller(parts, rule, request) : undefined
        const caller = local ?? authenticate(core, request.headers.authorization, originOf(request))
        if (!(caller instanceof Promise)) {
          admit(core, rule, caller, request)
          done()
          return
        }
        caller.then((found) => admit(core, rule, found, request)).then(() => done(), done)
      } catch (error) {
        done(error as Error)
      }
    }
    return { before, after: (request, reply, done) => admitAgain(core, before, request, reply, done) }
  }
}

function admit(core: Core, rule: RouteRule, caller: Caller, request: FastifyRequest): void {
  if (rule.access === 'admin' && rule.scope !== undefined)
    requireScope(core, caller, rule.scope, originOf(request))
  request.caller = caller
  request.admittedWhole = request.raw.complete
}

/** Asks again only where the body came later, and something has changed since: nearly never. */
function admitAgain(
  core: Core,
  before: GateHook,
  request: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  const { caller } = request
  if (request.admittedWhole || caller?.kind !== 'agent') {
    done()
    return
  }
  const compare = (generation: number) => {
    if (caller.generation >= generation) done()
    else before(request, reply, done)
  }
  const generation = core.store.generation()
  if (typeof generation === 'number') compare(generation)
  // When the store cannot be asked, the gate says so in the right words.
  else generation.then(compare, () => before(request, reply, done))
}

/** The local host, the admin token or the unix socket; undefined when it is none of them. */
function localCaller(
  parts: GateParts,
  rule: RouteRule,
  request: FastifyRequest,
): Promise<Caller> | undefined {
  const { authorization } = request.headers
  if (authorization !== undefined) {
    return isAdminToken(parts.adminToken, authorization)
      ? enter(parts, rule, 'admin_token', request)
      : undefined
  }
  if (parts.isUnixSocket(request.raw.socket)) return enter(parts, rule, 'unix_socket', request)
  return askLocalHost(parts, rule, request)
}

async function askLocalHost(parts: GateParts, rule: RouteRule, request: FastifyRequest): Promise<Caller> {
  const verdict = await parts.localHost(request.raw)
  if (verdict === 'misdirected') throw new Problem('misdirected_request')
  if (verdict === 'not_local') throw new Problem('unauthorized')
  return enter(parts, rule, 'loopback', request)
}

/** Each use is recorded before it has an effect (decisions §2.3, §7.1). */
async function enter(
  parts: GateParts,
  rule: RouteRule,
  method: LocalCaller['method'],
  request: FastifyRequest,
): Promise<Caller> {
  const { core } = parts
  const caller: LocalCaller = { kind: 'local', method, generation: await core.store.generation() }
  const details = {
    route: `${request.method} ${request.routeOptions.url ?? ''}`,
    ...(rule.scope === undefined ? {} : { scope: rule.scope }),
  }
  await commit(core, [audit(core, caller, originOf(request), { action: 'admin.local_access', details })], {
    code: 'audit_unavailable',
  })
  return caller
}

function isAdminToken(token: string, authorization: string): boolean {
  const sent = Buffer.from(/^[Bb]earer ([0-9a-f]{64})$/.exec(authorization)?.[1] ?? '')
  const expected = Buffer.from(token)
  return sent.length === expected.length && timingSafeEqual(sent, expected)
}
