import type { OpenBackend } from '../../backends/registry.ts'
import { nameKey } from '../../domain/agent.ts'
import { parseDuration } from '../../domain/duration.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { absoluteScope, decideGrant, heldUntil, requireScopes, scopeHere } from '../../domain/scope.ts'
import { decideLifetime } from '../../domain/ttl.ts'
import { audit } from '../audit/entry.ts'
import { agentEnded } from '../authentication/authenticate.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commit, whileUnchanged } from '../commit.ts'
import { type Core, UNKNOWN_BACKEND } from '../context.ts'
import { replayReply } from './idempotency.ts'
import { issueAtUpstream } from './issue-at-upstream.ts'
import { issueLocally } from './issue-locally.ts'
import {
  type IdempotencyClaim,
  type IssueCommand,
  type IssuedCredential,
  type Plan,
  StalePlan,
} from './issue-plan.ts'
import { checkLimits, leavePlaces } from './quotas.ts'

const TRIES = 3

/**
 * Issues one credential (ARCHITECTURE.md, the life of a credential). Throws `backend_not_found`,
 * `scope_not_allowed`, `ttl_exceeded`, `invalid_request`, `rate_limited`, `conflict`, the `backend_*` problems,
 * `audit_unavailable` and `unauthorized`.
 */
export async function issueCredential(
  core: Core,
  caller: AgentCaller,
  command: IssueCommand,
  origin: Origin,
): Promise<IssuedCredential> {
  const started = performance.now()
  let current = caller
  for (let attempt = 1; ; attempt += 1) {
    try {
      const issued = await issueOnce(core, current, command, origin)
      core.meter.issued(issued.backend, 'ok', performance.now() - started)
      return issued
    } catch (error) {
      if (error instanceof StalePlan && attempt < TRIES) {
        current = await anew(core, current)
        continue
      }
      const problem =
        error instanceof StalePlan
          ? new Problem('conflict', { message: 'The agent or the backend is being changed; try again.' })
          : error
      const name = await meteredName(core, current, command.backend)
      core.meter.issued(name, isDenial(problem) ? 'denied' : 'failed', performance.now() - started)
      throw problem
    }
  }
}

async function issueOnce(
  core: Core,
  caller: AgentCaller,
  command: IssueCommand,
  origin: Origin,
): Promise<IssuedCredential> {
  const set = core.backends.at(caller.generation)
  const { byName } = set instanceof Promise ? await set : set
  const backend = byName.get(nameKey(command.backend))
  if (backend === undefined) throw deny(core, caller, origin, command, new Problem('backend_not_found'))
  const replay =
    command.idempotencyKey === undefined ? undefined : await replayReply(core, caller, backend, command)
  if (replay?.reply !== undefined) return tellAgain(core, caller, backend, command, origin, replay.reply)
  const plan = decide(core, caller, backend, command, origin, replay?.claim)
  const places = await checkLimits(core, plan).catch((error: unknown) => {
    throw deny(core, caller, origin, command, error, backend.name)
  })
  try {
    if (!backend.kind.upstream) return await issueLocally(core, plan)
    return await issueAtUpstream(core, plan, () => leavePlaces(places))
  } finally {
    leavePlaces(places)
  }
}

/**
 * A secret is told again only to whoever could have been issued it now (a narrowed token could not), while the agent
 * lives, and with an entry of its own. Without the secret it is no more than reading the credential.
 */
async function tellAgain(
  core: Core,
  caller: AgentCaller,
  backend: OpenBackend,
  command: IssueCommand,
  origin: Origin,
  reply: IssuedCredential,
): Promise<IssuedCredential> {
  const grant = decideGrant(backend.name, caller.scopes, undefined, reply.scopes)
  if ('refused' in grant) {
    const problem = new Problem('scope_not_allowed', { message: refusals[grant.refused] })
    throw deny(core, caller, origin, command, problem, backend.name)
  }
  if (reply.token === undefined) return reply
  const entry = audit(core, caller, origin, {
    action: 'credential.repeated',
    backend: backend.name,
    credentialId: reply.id,
    scopes: reply.scopes,
    ttlMs: parseDuration(reply.ttl),
    metadata: command.metadata,
  })
  const outcome = await commit(core, [...whileUnchanged(caller), entry], { code: 'audit_unavailable' })
  if (!outcome.done) throw new StalePlan()
  return reply
}

/** Pure decisions, and the denial recorded where one falls. */
function decide(
  core: Core,
  caller: AgentCaller,
  backend: OpenBackend,
  command: IssueCommand,
  origin: Origin,
  claim: IdempotencyClaim | undefined,
): Plan {
  try {
    const now = core.store.now()
    if (command.scopes !== undefined) requireScopes(command.scopes)
    const grant = decideGrant(backend.name, caller.scopes, backend.allowedScopes, command.scopes)
    if ('refused' in grant) throw new Problem('scope_not_allowed', { message: refusals[grant.refused] })
    if (!grant.granted.every((scope) => backend.kind.scopes.valid(scopeHere(backend.name, scope)))) {
      throw new Problem('invalid_request', {
        message: `A scope is not one of this backend. ${backend.kind.scopes.help}`,
      })
    }
    const policy = core.settings.policies.find((one) => one.name === caller.policy)
    const rule = {
      defaultTtlMs: backend.defaultTtlMs,
      maxTtlMs: Math.min(backend.maxTtlMs, backend.kind.limits.maxTtlMs ?? Number.POSITIVE_INFINITY),
      minTtlMs: backend.kind.limits.minTtlMs,
      agentMaxTtlMs: policy?.maxTtlMs,
    }
    const lifetime = decideLifetime(command.ttl, rule, caller.agentExpiresAt, now)
    const params = command.params ?? {}
    const faults = core.backends.paramFaults(backend.kind, params)
    if (faults.length > 0) throw invalid(`"params" is not valid: ${faults.slice(0, 5).join(' ')}`)
    return {
      id: core.ids.id('credential'),
      caller,
      origin,
      backend,
      scopes: grant.granted,
      ttlMs: lifetime.ttlMs,
      now,
      expiresAt: Math.min(lifetime.expiresAt, endOfGrant(caller, backend.name, grant.granted)),
      params,
      metadata: command.metadata,
      claim,
    }
  } catch (error) {
    throw deny(core, caller, origin, command, error, backend.name)
  }
}

/** Extra scopes end by themselves (decisions §5.5), and what was got by them with them. */
function endOfGrant(caller: AgentCaller, backend: string, granted: readonly string[]): number {
  if (caller.timed.length === 0) return Number.POSITIVE_INFINITY
  return heldUntil(
    caller.timed,
    granted.map((scope) => absoluteScope(backend, scope)),
  )
}

const refusals = {
  no_scope_here: 'Your scopes do not include this backend.',
  agent: 'A requested scope is not among your scopes.',
  backend: 'A requested scope is not permitted on this backend.',
} as const

function deny(
  core: Core,
  caller: AgentCaller,
  origin: Origin,
  command: IssueCommand,
  error: unknown,
  backend?: string,
): unknown {
  if (error instanceof Problem) {
    core.denials.record(caller, origin, {
      action: 'credential.issue_failed',
      backend,
      scopes: command.scopes,
      ttlMs: command.ttl === undefined ? undefined : parseDuration(command.ttl),
      metadata: command.metadata,
      details: { code: error.code },
    })
  }
  return error
}

/** As it is configured, or one name for all that are not: what callers invent must not make new series. */
async function meteredName(core: Core, caller: AgentCaller, asked: string): Promise<string> {
  const { byName } = await core.backends.at(caller.generation)
  return byName.get(nameKey(asked))?.name ?? UNKNOWN_BACKEND
}

async function anew(core: Core, caller: AgentCaller): Promise<AgentCaller> {
  const refreshed = await core.callers.refresh(caller, await core.store.generation())
  if (refreshed === undefined) throw agentEnded()
  return refreshed
}

function isDenial(error: unknown): boolean {
  return error instanceof Problem && error.status < 500
}
