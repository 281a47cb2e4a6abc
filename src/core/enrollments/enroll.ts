import { nameKey } from '../../domain/agent.ts'
import { type Enrollment, enrollmentStatusAt, UNDECIDED } from '../../domain/enrollment.ts'
import { COLLECT_MS, ENROLLMENT_MS, MINUTE_MS } from '../../domain/limits.ts'
import { type Admission, policyBounds } from '../../domain/policy.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import { checkPublicJwk } from '../../keys/public-jwk.ts'
import type { Step } from '../../store/engine/change.ts'
import { beyondServer, type CreatedAgent, type PreparedAgent, prepareAgent } from '../agents/create-agent.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, Origin } from '../caller.ts'
import { commit, commitOrConflict } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf, siteOf } from '../network.ts'
import { takeOrRefuse } from '../rates.ts'
import { requireUnheld } from '../reserved-name.ts'
import { admittedName } from './admitted-name.ts'
import { boundsNote, countAdmission, fullNote, judgeEnrollment, reservedNote } from './judge-enrollment.ts'
import { answerOf } from './pending-enrollment.ts'

export interface EnrollCommand {
  readonly name: string
  readonly scopes?: readonly string[] | undefined
  /** An Ed25519 or P-256 public JWK. */
  readonly public_key: unknown
  /** Its size has been checked. */
  readonly metadata?: Record<string, unknown> | undefined
}

/** One request to enroll. */
interface Attempt {
  readonly command: EnrollCommand
  readonly actor: Actor<undefined>
  /** The enrollment it would leave pending. */
  readonly enrollment: Enrollment
}

/** How many networks of a site may use up their rate at once. */
const NETWORKS_PER_SITE = 10

type Approval = Extract<Admission, { decision: 'approve' }>

/**
 * Anybody may enroll. Objections are noted for the administrator; the caller learns only about the form of its request
 * (decisions.md §5.4). A key that asks again gets the enrollment it already has. Throws `invalid_request` and
 * `rate_limited`.
 */
export async function enroll(
  core: Core,
  actor: Actor<undefined>,
  command: EnrollCommand,
): Promise<Enrollment> {
  const { origin } = actor
  const now = core.store.now()
  const rate = { count: core.settings.enrollmentsPerMinute, perMs: MINUTE_MS }
  const message = 'Too many enrollments from this network; try again later.'
  takeOrRefuse(core.rates, `enroll|${networkOf(origin.ipAddress)}`, rate, now, message)
  const ofSite = { ...rate, count: rate.count * NETWORKS_PER_SITE }
  takeOrRefuse(core.rates, `enroll-site|${siteOf(origin.ipAddress)}`, ofSite, now, message)
  const attempt = { command, actor, enrollment: draft(core, command, origin, now) }
  // Serialized, so that a key that asks again while its first request is running finds that request.
  return core.serialize(
    `enroll|${attempt.enrollment.fingerprint}`,
    async () => (await findSame(core, attempt, now)) ?? (await decide(core, attempt)),
  )
}

/**
 * The enrollment that this key already has. A client that lost the reply asks again, and a second agent with the same
 * name could not be approved. The public key alone collects nothing.
 */
async function findSame(
  core: Core,
  { command, enrollment }: Attempt,
  now: number,
): Promise<Enrollment | undefined> {
  const wanted = command.scopes === undefined ? undefined : JSON.stringify([...new Set(command.scopes)])
  const open = await core.store.enrollments.openOf(enrollment.fingerprint ?? '')
  return open.find((known) => {
    if (known.type !== 'enroll' || nameKey(known.name) !== nameKey(enrollment.name)) return false
    const status = enrollmentStatusAt(known, now)
    // An approved enrollment holds the granted scopes, no longer the requested ones.
    if (status !== 'pending') return status === 'approved'
    return wanted === undefined || wanted === JSON.stringify(known.scopes)
  })
}

async function decide(core: Core, attempt: Attempt): Promise<Enrollment> {
  const { admission, scopes, note, isTaken } = await judgeEnrollment(core, attempt.command)
  const policy = admission.policy?.name
  const asked = { ...attempt, enrollment: { ...attempt.enrollment, scopes } }
  if (admission.decision === 'wait' || note !== '') return leavePending(core, asked, { note, policy })
  // Serialized, so that the counted number of agents is the real one.
  return core.serialize(`admit|${admission.policy.name}`, async () => {
    const admitted = await admit(core, asked, admission, isTaken)
    return typeof admitted === 'string' ? leavePending(core, asked, { note: admitted, policy }) : admitted
  })
}

/** Checks the form of everything. A reserved name is well-formed: the administrator refuses it. */
function draft(core: Core, command: EnrollCommand, origin: Origin, now: number): Enrollment {
  reservedNote(command.name)
  if (command.scopes !== undefined) requireScopes(command.scopes)
  const key = checkPublicJwk(command.public_key)
  if (key === undefined) throw invalid('"public_key" must be an Ed25519 or P-256 public JWK.')
  return {
    id: core.ids.id('enrollment'),
    type: 'enroll',
    name: command.name,
    agentId: null,
    scopes: [],
    publicJwk: { ...key.jwk },
    fingerprint: key.thumbprint,
    metadata: command.metadata ?? null,
    reason: null,
    lifetimeMs: null,
    ipAddress: origin.ipAddress,
    createdAt: now,
    expiresAt: now + ENROLLMENT_MS,
    ...UNDECIDED,
  }
}

/** Of the enrollments that may wait, a quarter may come from one network, so that it cannot keep out all others. */
const SHARE = 4

/** Throws `rate_limited` when the most enrollments allowed, in all or from this network, are waiting for a decision. */
async function requireRoom(core: Core, { ipAddress }: Origin): Promise<void> {
  const most = core.settings.maxPendingEnrollments
  const sites = (await core.store.enrollments.pendingAddresses(most)).map(siteOf)
  const site = siteOf(ipAddress)
  const ours = sites.filter((one) => one === site).length
  if (sites.length < most && ours < Math.ceil(most / SHARE)) return
  throw new Problem('rate_limited', {
    message: 'Too many enrollments are waiting for a decision; try again later.',
    retryAfterSeconds: 60,
  })
}

async function leavePending(
  core: Core,
  attempt: Attempt,
  { note, policy }: { note: string; policy: string | undefined },
): Promise<Enrollment> {
  await requireRoom(core, attempt.actor.origin)
  const pending = { ...attempt.enrollment, note }
  const change = [core.store.enrollments.insert(pending), requested(core, attempt, { note, policy })]
  await commitOrConflict(core, attempt.actor, change, 'The enrollment could not be stored; try again.')
  return pending
}

function requested(
  core: Core,
  { command, actor, enrollment }: Attempt,
  details: Record<string, unknown>,
): Step {
  return audit(core, actor, {
    action: 'enrollment.requested',
    scopes: command.scopes ?? [],
    metadata: command.metadata,
    details: {
      enrollment_id: enrollment.id,
      name: enrollment.name,
      public_key_fingerprint: enrollment.fingerprint,
      ...details,
    },
  })
}

/** How often nodes that admit by the same policy at once may collide before an administrator has to decide. */
const TRIES = 5
const BUSY = 'Too many agents are enrolling under this policy at once.'

/** Approves at once, or says why an administrator has to decide. */
async function admit(
  core: Core,
  attempt: Attempt,
  approval: Approval,
  isTaken: boolean,
): Promise<Enrollment | string> {
  const { policy } = approval
  let count = await countAdmission(core, policy)
  const bound = await boundsNote(core, policy, 'take')
  if (bound !== undefined) return bound
  let made = await prepareAdmitted(core, attempt, approval, isTaken)
  for (let tries = 1; ; tries += 1) {
    if (made instanceof Problem) return made.message
    const approved = approvedBy(core, attempt.enrollment, made, approval)
    const steps = admissionSteps(core, { ...attempt, enrollment: approved }, made, policy.name)
    const outcome = await commit(core, attempt.actor, [...count, ...steps])
    if (outcome.done) return approved
    if (tries === TRIES) return BUSY
    // The name was taken in the meantime.
    if (outcome.step >= count.length) made = await prepareAdmitted(core, attempt, approval, true)
    count = await countAdmission(core, policy)
    const full = await fullNote(core, policy)
    if (full !== undefined) return full
  }
}

function approvedBy(
  core: Core,
  enrollment: Enrollment,
  made: CreatedAgent,
  { policy, lifetimeMs }: Approval,
): Enrollment {
  const now = core.store.now()
  return {
    ...enrollment,
    scopes: made.agent.scopes,
    status: 'approved',
    note: `Approved by the policy "${policy.name}".`,
    agentId: made.agent.id,
    lifetimeMs: lifetimeMs ?? null,
    decidedAt: now,
    decidedBy: 'system',
    sealedAnswer: core.sealer.seal('enrollments', enrollment.id, 'answer', answerOf(made)),
    collectUntil: now + COLLECT_MS,
  }
}

function admissionSteps(
  core: Core,
  attempt: Attempt,
  { agent, steps }: PreparedAgent,
  policy: string,
): Step[] {
  const { enrollment, actor } = attempt
  const details = { enrollment_id: enrollment.id, policy }
  const entry = (action: 'enrollment.approved' | 'agent.created', more: Record<string, unknown>) =>
    audit(core, actor, {
      action,
      agent,
      scopes: agent.scopes,
      details: { ...details, ...more },
    })
  return [
    ...steps,
    core.store.enrollments.insert(enrollment),
    requested(core, attempt, { policy }),
    entry('enrollment.approved', {}),
    entry('agent.created', {
      expires_at: agent.expiresAt,
      ...(agent.audiences.length === 0 ? {} : { audiences: agent.audiences }),
    }),
  ]
}

async function prepareAdmitted(
  core: Core,
  { enrollment }: Attempt,
  { scopes, lifetimeMs, policy }: Approval,
  isTaken: boolean,
): Promise<PreparedAgent | Problem> {
  const name = admittedName(core, policy, enrollment.name, isTaken)
  try {
    // With a suffix it may be one that an entry gives.
    requireUnheld(core, name)
    return await prepareAgent(core, {
      name,
      scopes,
      audiences: beyondServer(core, policy.audiences),
      lifetimeMs,
      policy: policy.name,
      bounds: policyBounds(policy),
      publicJwk: enrollment.publicJwk,
      createdBy: 'system',
    })
  } catch (error) {
    // For example, the name gives no valid e-mail address for signing: the anonymous caller must not learn this.
    if (error instanceof Problem && error.status < 500) return error
    throw error
  }
}
