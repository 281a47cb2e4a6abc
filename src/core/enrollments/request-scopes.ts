import { nameKey } from '../../domain/agent.ts'
import { requireLifetime } from '../../domain/duration.ts'
import { ENROLLMENT_MS, MAX_REQUESTS_PER_AGENT, MINUTE_MS } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import { audit } from '../audit/entry.ts'
import type { AgentCaller, Origin } from '../caller.ts'
import { commitOrConflict, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'
import { requireRoom } from './enroll.ts'
import { type Enrollment, UNDECIDED } from './pending-enrollment.ts'

export interface ScopesCommand {
  readonly scopes: readonly string[]
  readonly reason?: string | undefined
  /** A duration as it was written: how long the extra scopes are wanted. */
  readonly expires_in?: string | undefined
}

type Parts = Pick<Core, 'store' | 'ids' | 'settings' | 'rates'>

/** An agent asks for more; always decided by hand, so that anything may be asked. Throws `invalid_request` and `rate_limited`. */
export async function requestScopes(
  core: Parts,
  caller: AgentCaller,
  command: ScopesCommand,
  origin: Origin,
): Promise<Enrollment> {
  const now = core.store.now()
  requireScopes(command.scopes)
  if (command.scopes.length === 0) throw invalid('"scopes" is empty: name the scopes that you need.')
  const lifetimeMs =
    command.expires_in === undefined ? undefined : requireLifetime(command.expires_in, 'expires_in')
  const rate = { count: core.settings.enrollmentsPerMinute, perMs: MINUTE_MS }
  const message = 'Scopes are being asked for faster than is allowed here.'
  takeOrRefuse(core.rates, `request|${caller.agentId}`, rate, now, message)
  if ((await core.store.enrollments.pendingOf(caller.agentId)).length >= MAX_REQUESTS_PER_AGENT) {
    throw new Problem('rate_limited', {
      message: `At most ${MAX_REQUESTS_PER_AGENT} requests of one agent may wait for a decision.`,
      retryAfterSeconds: 60,
    })
  }
  await requireRoom(core)
  const row = amendment(core, caller, command, lifetimeMs, origin, now)
  const entry = audit(core, caller, origin, {
    action: 'enrollment.requested',
    scopes: row.scopes,
    details: {
      enrollment_id: row.id,
      type: 'amendment',
      ...(command.reason === undefined ? {} : { reason: command.reason }),
      ...(command.expires_in === undefined ? {} : { expires_in: command.expires_in }),
    },
  })
  await commitOrConflict(
    core,
    [...whileUnchanged(caller), { op: 'insert', table: 'enrollments', row }, entry],
    'The agent is being changed; try again.',
  )
  return row
}

function amendment(
  core: Parts,
  caller: AgentCaller,
  command: ScopesCommand,
  lifetimeMs: number | undefined,
  origin: Origin,
  now: number,
): Enrollment {
  return {
    id: core.ids.id('enrollment'),
    type: 'amendment',
    name: caller.agentName,
    name_key: nameKey(caller.agentName),
    agent_id: caller.agentId,
    scopes: JSON.stringify([...new Set(command.scopes)]),
    public_jwk: null,
    fingerprint: null,
    metadata: null,
    reason: command.reason ?? null,
    lifetime_ms: lifetimeMs ?? null,
    ip_address: origin.ipAddress,
    created_at: now,
    expires_at: now + ENROLLMENT_MS,
    ...UNDECIDED,
  }
}
