import { requireLifetime } from '../../domain/duration.ts'
import { type Enrollment, UNDECIDED } from '../../domain/enrollment.ts'
import { ENROLLMENT_MS, MAX_REQUESTS_PER_AGENT, MINUTE_MS } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commitOrConflict, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'

export interface ScopesCommand {
  readonly scopes: readonly string[]
  readonly reason?: string | undefined
  /** How long the extra scopes are wanted: a duration as it was written. */
  readonly expires_in?: string | undefined
}

type Parts = Pick<Core, 'store' | 'ids' | 'settings' | 'rates'>

/** An agent requests more scopes. It may request any, because an administrator always decides. Throws `invalid_request` and `rate_limited`. */
export async function requestScopes(
  core: Parts,
  actor: Actor<AgentCaller>,
  command: ScopesCommand,
): Promise<Enrollment> {
  const { caller, origin } = actor
  const now = core.store.now()
  requireScopes(command.scopes)
  if (command.scopes.length === 0) throw invalid('"scopes" must not be empty.')
  const lifetimeMs =
    command.expires_in === undefined ? undefined : requireLifetime(command.expires_in, 'expires_in')
  const rate = { count: core.settings.enrollmentsPerMinute, perMs: MINUTE_MS }
  const message = 'Too many requests for scopes; try again later.'
  takeOrRefuse(core.rates, `request|${caller.agentId}`, rate, now, message)
  if ((await core.store.enrollments.pendingOf(caller.agentId)).length >= MAX_REQUESTS_PER_AGENT) {
    throw new Problem('rate_limited', {
      message: `An agent may have at most ${MAX_REQUESTS_PER_AGENT} requests waiting for a decision.`,
      retryAfterSeconds: 60,
    })
  }
  const most = core.settings.maxPendingEnrollments
  if ((await core.store.enrollments.countAmendments(most)) >= most) {
    throw new Problem('rate_limited', {
      message: 'Too many requests for scopes are waiting for a decision; try again later.',
      retryAfterSeconds: 60,
    })
  }
  const amendment: Enrollment = {
    id: core.ids.id('enrollment'),
    type: 'amendment',
    name: caller.agentName,
    agentId: caller.agentId,
    scopes: [...new Set(command.scopes)],
    publicJwk: null,
    fingerprint: null,
    metadata: null,
    reason: command.reason ?? null,
    lifetimeMs: lifetimeMs ?? null,
    ipAddress: origin.ipAddress,
    createdAt: now,
    expiresAt: now + ENROLLMENT_MS,
    ...UNDECIDED,
  }
  const entry = audit(core, actor, {
    action: 'enrollment.requested',
    scopes: amendment.scopes,
    details: {
      enrollment_id: amendment.id,
      type: 'amendment',
      reason: command.reason,
      expires_in: command.expires_in,
    },
  })
  await commitOrConflict(
    core,
    actor,
    [...whileUnchanged(actor), core.store.enrollments.insert(amendment), entry],
    'The agent was changed at the same time; try again.',
  )
  return amendment
}
