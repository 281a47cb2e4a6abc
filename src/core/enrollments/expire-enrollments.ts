import type { AgentGrant } from '../../domain/agent.ts'
import type { Enrollment } from '../../domain/enrollment.ts'
import { endAgent } from '../agents/end-agent.ts'
import { audit } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

type Parts = Pick<Core, 'store' | 'ids'>

/** Rows of each kind in one run; the next run takes the rest. */
const BATCH = 200

/**
 * A job: expires enrollments that waited too long for a decision, deletes agents that nobody collected, erases answers
 * and drops extra scopes that have expired. Skips rows that have changed since they were read. `now` is epoch ms.
 * Returns how many rows it read.
 */
export async function expireEnrollments(core: Parts, now: number): Promise<number> {
  const { agents, enrollments } = core.store
  const pending = await enrollments.expired(now, BATCH)
  const uncollected = await enrollments.uncollected(now, BATCH)
  const grants = await agents.expiredGrants(now, BATCH)
  await Promise.all([
    ...pending.map((one) => expirePending(core, one, now)),
    ...uncollected.map((one) => dropUncollected(core, one)),
    ...grants.map((grant) => dropGrant(core, grant)),
    commit(core, SYSTEM, [enrollments.eraseAnswers(now)], { urgent: true }),
  ])
  return pending.length + uncollected.length + grants.length
}

async function expirePending(core: Parts, enrollment: Enrollment, now: number): Promise<void> {
  const decision = { status: 'expired', decidedAt: now, decidedBy: 'system' } as const
  const change = [
    core.store.enrollments.decide(enrollment.id, decision),
    expiredEntry(core, enrollment, 'undecided'),
  ]
  await commit(core, SYSTEM, change, { urgent: true })
}

async function dropUncollected(core: Parts, enrollment: Enrollment): Promise<void> {
  const { id, agentId } = enrollment
  const steps = [core.store.enrollments.abandon(id), expiredEntry(core, enrollment, 'uncollected')]
  const agent = agentId === null ? undefined : await core.store.agents.findLiving(agentId)
  if (agent === undefined) await commit(core, SYSTEM, steps, { urgent: true })
  else await endAgent(core, SYSTEM, agent, 'uncollected', steps)
}

function expiredEntry(
  core: Parts,
  { id, agentId, name, scopes }: Enrollment,
  reason: 'undecided' | 'uncollected',
) {
  return audit(core, SYSTEM, {
    action: 'enrollment.expired',
    ...(agentId === null ? {} : { agent: { id: agentId, name } }),
    scopes,
    details: { enrollment_id: id, name, reason },
  })
}

/** Cached callers already know when the grant ends; the raised version refuses changes that are guarded by it. */
async function dropGrant(core: Parts, grant: AgentGrant): Promise<void> {
  const agent = await core.store.agents.findLiving(grant.agentId)
  const entry = audit(core, SYSTEM, {
    action: 'agent.scopes_changed',
    agent: { id: grant.agentId, name: agent?.name ?? '' },
    scopes: grant.scopes,
    details: { change: 'expired', expires_at: grant.expiresAt },
  })
  const touched = agent === undefined ? [] : core.store.agents.touch(agent.id)
  await commit(core, SYSTEM, [core.store.agents.dropGrant(grant.id), ...touched, entry], { urgent: true })
}
