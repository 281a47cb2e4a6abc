import type { AgentGrantRow } from '../../store/schema/rows.ts'
import { endAgent } from '../agents/end-agent.ts'
import { audit } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Enrollment } from './pending-enrollment.ts'

type Parts = Pick<Core, 'store' | 'ids'>

/** Rows of one kind that are looked at in one run; the next run takes the rest. */
const BATCH = 200

/**
 * A job: ends what waited too long for a decision, deletes agents that nobody came for, erases answers and
 * drops extra scopes that have run out. `now` is epoch ms. Returns how many rows were looked at; whatever
 * changed meanwhile is left alone.
 */
export async function expireEnrollments(core: Parts, now: number): Promise<number> {
  const { agents, enrollments } = core.store
  const pending = await enrollments.expired(now, BATCH)
  const uncollected = await enrollments.uncollected(now, BATCH)
  const grants = await agents.expiredGrants(now, BATCH)
  await Promise.all([
    ...pending.map((row) => expirePending(core, row, now)),
    ...uncollected.map((row) => dropUncollected(core, row)),
    ...grants.map((grant) => dropGrant(core, grant)),
    commit(core, [enrollments.eraseAnswers(now)], { urgent: true }),
  ])
  return pending.length + uncollected.length + grants.length
}

async function expirePending(core: Parts, row: Enrollment, now: number): Promise<void> {
  await commit(core, [
    core.store.enrollments.decide(row.id, { status: 'expired', decided_at: now, decided_by: 'system' }),
    expiredEntry(core, row, 'undecided'),
  ])
}

async function dropUncollected(core: Parts, row: Enrollment): Promise<void> {
  const steps = [core.store.enrollments.abandon(row.id), expiredEntry(core, row, 'uncollected')]
  const agent = row.agent_id === null ? undefined : await core.store.agents.findLiving(row.agent_id)
  if (agent === undefined) await commit(core, steps, { urgent: true })
  else await endAgent(core, agent, 'uncollected', undefined, SYSTEM, steps)
}

function expiredEntry(core: Parts, row: Enrollment, reason: 'undecided' | 'uncollected') {
  return audit(core, undefined, SYSTEM, {
    action: 'enrollment.expired',
    ...(row.agent_id === null ? {} : { agent: { id: row.agent_id, name: row.name } }),
    scopes: row.scopes,
    details: { enrollment_id: row.id, name: row.name, reason },
  })
}

/** Cached callers knew its end already; the agent's version says so to whoever is guarded by it. */
async function dropGrant(core: Parts, grant: AgentGrantRow): Promise<void> {
  const agent = await core.store.agents.findLiving(grant.agent_id)
  const entry = audit(core, undefined, SYSTEM, {
    action: 'agent.scopes_changed',
    agent: { id: grant.agent_id, name: agent?.name ?? '' },
    scopes: grant.scopes,
    details: { change: 'expired', expires_at: grant.expires_at },
  })
  const touched = agent === undefined ? [] : core.store.agents.touch(agent.id)
  await commit(core, [core.store.agents.dropGrant(grant.id), ...touched, entry], { urgent: true })
}
