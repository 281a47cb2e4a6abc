import type { Agent } from '../../domain/agent.ts'
import { claimIdOf, type Enrollment, enrollmentStatusAt, UNDECIDED } from '../../domain/enrollment.ts'
import type { ClaimMetadata } from '../../domain/identity/claim-metadata.ts'
import { CLAIM_MS, MAX_PENDING_CLAIMS } from '../../domain/limits.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import type { Core } from '../context.ts'

/** An agent of a platform that has no rights. */
export interface Unclaimed {
  readonly agent: Agent
  /** It is made in the same change. */
  readonly isNew: boolean
  /** All names of agents of its platform begin with this text, and are as long as its own. */
  readonly prefix: string
  readonly metadata: ClaimMetadata
}

/**
 * Puts an agent without rights into the inbox, unless it waits there already, was rejected once, or the inbox holds all that it may
 * of this platform. A login of the agent then tries again. The steps go into the commit of the login.
 */
export async function claimSteps(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor<undefined>,
  { agent, isNew, prefix, metadata }: Unclaimed,
): Promise<Step[]> {
  const { enrollments, now } = core.store
  const id = claimIdOf(agent.id)
  const before = isNew ? undefined : await enrollments.find(id)
  if (before?.status === 'rejected') return []
  if (before !== undefined && enrollmentStatusAt(before, now()) === 'pending') return []
  // `.` comes after `-`, with which the prefix ends.
  const names = { from: prefix, to: `${prefix.slice(0, -1)}.`, length: agent.name.length }
  if ((await enrollments.countClaims(names, MAX_PENDING_CLAIMS)) >= MAX_PENDING_CLAIMS) return []
  const claim: Enrollment = {
    id,
    type: 'claim',
    name: agent.name,
    agentId: agent.id,
    scopes: [],
    publicJwk: null,
    fingerprint: null,
    metadata: { ...metadata },
    reason: null,
    lifetimeMs: null,
    ipAddress: actor.origin.ipAddress,
    createdAt: now(),
    expiresAt: now() + CLAIM_MS,
    ...UNDECIDED,
  }
  const { platform, issuer, subject } = metadata
  return [
    // What it was given before has ended, or nobody decided.
    ...(before === undefined ? [] : [enrollments.drop([id])]),
    enrollments.insert(claim),
    audit(core, actor, {
      action: 'enrollment.requested',
      agent,
      scopes: [],
      details: { enrollment_id: id, type: 'claim', platform, issuer, subject },
    }),
  ]
}
