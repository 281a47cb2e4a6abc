import { ID_PREFIX } from './ids.ts'

export type EnrollmentStatus = 'pending' | 'approved' | 'rejected' | 'expired'

/**
 * `enroll`: a request to become an agent. `amendment`: by an agent, for more scopes. `claim`: nobody asked; an agent of a platform
 * came in without rights.
 */
export type EnrollmentType = 'enroll' | 'amendment' | 'claim'

/** What waits for a decision, or did. Times in epoch ms. */
export interface Enrollment {
  readonly id: string
  readonly type: EnrollmentType
  readonly name: string
  /** The agent that asks for more or is to get some, or the agent made by an approval. */
  readonly agentId: string | null
  /** The requested scopes; once approved, the granted ones. */
  readonly scopes: readonly string[]
  readonly publicJwk: Readonly<Record<string, unknown>> | null
  readonly fingerprint: string | null
  /** What it says of itself; of a claim `ClaimMetadata`. */
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly reason: string | null
  /** Lifetime of the agent or of the extra scopes. */
  readonly lifetimeMs: number | null
  readonly ipAddress: string | null
  readonly status: EnrollmentStatus
  /** Why a policy left it to the administrator. */
  readonly note: string | null
  readonly createdAt: number
  readonly expiresAt: number
  readonly decidedAt: number | null
  readonly decidedBy: string | null
  readonly decisionNote: string | null
  /** The answer that the agent receives once; null after it is erased. */
  readonly sealedAnswer: string | null
  readonly collectUntil: number | null
  readonly collectedAt: number | null
  readonly eraseAt: number | null
}

/** The fields that a decision writes; omitted ones keep their values. */
export type EnrollmentDecision = Pick<Enrollment, 'status' | 'decidedAt' | 'decidedBy'> &
  Partial<
    Pick<Enrollment, 'agentId' | 'scopes' | 'lifetimeMs' | 'decisionNote' | 'sealedAnswer' | 'collectUntil'>
  >

/** The undecided part of a new enrollment. */
export const UNDECIDED = {
  status: 'pending',
  note: null,
  decidedAt: null,
  decidedBy: null,
  decisionNote: null,
  sealedAnswer: null,
  collectUntil: null,
  collectedAt: null,
  eraseAt: null,
} as const satisfies Partial<Enrollment>

/** The status at `now`, whether or not the job that expires enrollments has run. */
export function enrollmentStatusAt(enrollment: Enrollment, now: number): EnrollmentStatus {
  const { status, expiresAt, collectUntil } = enrollment
  if (status === 'pending') return expiresAt <= now ? 'expired' : 'pending'
  if (status === 'approved') return collectUntil !== null && collectUntil <= now ? 'expired' : 'approved'
  return status
}

/** An agent has one claim at most, which is found by the id of the agent. */
export function claimIdOf(agentId: string): string {
  return ID_PREFIX.enrollment + agentId.slice(ID_PREFIX.agent.length)
}
