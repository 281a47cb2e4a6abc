import { nameKey } from '../../domain/agent.ts'
import { COLLECT_MS, ENROLLMENT_MS, MINUTE_MS } from '../../domain/limits.ts'
import type { Admission } from '../../domain/policy.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { requireScopes } from '../../domain/scope.ts'
import type { Step } from '../../store/engine/change.ts'
import { type CreatedAgent, prepareAgent } from '../agents/create-agent.ts'
import { audit } from '../audit/entry.ts'
import type { Origin } from '../caller.ts'
import { commit, commitOrConflict } from '../commit.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'
import { takeOrRefuse } from '../rates.ts'
import { serialize } from '../serialize.ts'
import {
  admissionTurn,
  boundsNote,
  fullNote,
  judgeEnrollment,
  reservedNote,
  TAKEN,
} from './judge-enrollment.ts'
import { answerOf, type Enrollment, statusOf, UNDECIDED } from './pending-enrollment.ts'

export interface EnrollCommand {
  readonly name: string
  readonly scopes?: readonly string[] | undefined
  /** An Ed25519 or P-256 public JWK. */
  readonly public_key: unknown
  /** Bounded already. */
  readonly metadata?: Record<string, unknown> | undefined
}

type Parts = Pick<
  Core,
  'store' | 'ids' | 'keys' | 'hasher' | 'sealer' | 'settings' | 'denials' | 'rates' | 'log'
>
type Approval = Extract<Admission, { decision: 'approve' }>

/**
 * Anybody may ask. What stands against it is written down for the administrator; the caller hears only of the
 * form of what was sent (decisions §5.4). A key that asks again gets what it has. Throws `invalid_request` and
 * `rate_limited`.
 */
export async function enroll(core: Parts, command: EnrollCommand, origin: Origin): Promise<Enrollment> {
  const now = core.store.now()
  const rate = { count: core.settings.enrollmentsPerMinute, perMs: MINUTE_MS }
  const message = 'Enrollments are being asked for faster than is allowed here.'
  takeOrRefuse(core.rates, `enroll|${networkOf(origin.ipAddress)}`, rate, now, message)
  const row = draft(core, command, origin, now)
  // One after the other, so that a key which asks again while its first request is under way finds that one.
  return serialize(core.rates, `enroll|${row.fingerprint}`, async () => {
    const known = await findSame(core, row, command, now)
    return known ?? (await ask(core, row, command, origin))
  })
}

/**
 * The enrollment that this key has already: whoever lost the reply asks again, and a second agent of the name
 * could not be approved. With its public key alone nobody collects anything.
 */
async function findSame(
  core: Parts,
  { name_key, fingerprint }: Enrollment,
  { scopes }: EnrollCommand,
  now: number,
): Promise<Enrollment | undefined> {
  const wanted = scopes === undefined ? undefined : JSON.stringify([...new Set(scopes)])
  const open = await core.store.enrollments.openOf(fingerprint ?? '')
  return open.find((row) => {
    const status = row.type === 'enroll' && row.name_key === name_key ? statusOf(row, now) : 'expired'
    // What was asked is no longer known once it is approved.
    return status === 'approved' || (status === 'pending' && (wanted ?? row.scopes) === row.scopes)
  })
}

async function ask(
  core: Parts,
  row: Enrollment,
  command: EnrollCommand,
  origin: Origin,
): Promise<Enrollment> {
  const { admission, scopes, note } = await judgeEnrollment(core, command)
  const asked = { ...row, scopes: JSON.stringify(scopes) }
  if (admission.decision === 'wait' || note !== '')
    return leavePending(core, asked, note, admission.policy?.name, command, origin)
  // One after the other, so that the number of agents that is counted is the number that there is.
  return serialize(core.rates, `admit|${admission.policy.name}`, async () => {
    const refusal = await admit(core, asked, admission, command, origin)
    return typeof refusal === 'string'
      ? leavePending(core, asked, refusal, admission.policy.name, command, origin)
      : refusal
  })
}

/** The form of everything. A reserved name is well-formed: that it is reserved is for the administrator. */
function draft(core: Parts, command: EnrollCommand, origin: Origin, now: number): Enrollment {
  reservedNote(command.name)
  if (command.scopes !== undefined) requireScopes(command.scopes)
  const key = core.keys.checkPublicJwk(command.public_key)
  if (key === undefined) throw invalid('"public_key" is not an Ed25519 or P-256 public JWK.')
  return {
    id: core.ids.id('enrollment'),
    type: 'enroll',
    name: command.name,
    name_key: nameKey(command.name),
    agent_id: null,
    scopes: '[]',
    public_jwk: JSON.stringify(key.jwk),
    fingerprint: key.thumbprint,
    metadata: command.metadata === undefined ? null : JSON.stringify(command.metadata),
    reason: null,
    lifetime_ms: null,
    ip_address: origin.ipAddress,
    created_at: now,
    expires_at: now + ENROLLMENT_MS,
    ...UNDECIDED,
  }
}

/** Throws `rate_limited` while as many wait for a decision as may. */
export async function requireRoom(core: Pick<Core, 'store' | 'settings'>): Promise<void> {
  const most = core.settings.maxPendingEnrollments
  if ((await core.store.enrollments.countPending(most)) < most) return
  throw new Problem('rate_limited', {
    message: 'Too many enrollments are waiting for a decision; try again later.',
    retryAfterSeconds: 60,
  })
}

async function leavePending(
  core: Parts,
  row: Enrollment,
  note: string,
  policy: string | undefined,
  command: EnrollCommand,
  origin: Origin,
): Promise<Enrollment> {
  await requireRoom(core)
  const pending = { ...row, note }
  const change = [
    { op: 'insert', table: 'enrollments', row: pending } as const,
    requested(core, pending, { note, ...(policy === undefined ? {} : { policy }) }, command, origin),
  ]
  await commitOrConflict(core, change, 'The enrollment could not be stored; try again.')
  return pending
}

function requested(
  core: Parts,
  row: Enrollment,
  why: Record<string, unknown>,
  command: EnrollCommand,
  origin: Origin,
) {
  return audit(core, undefined, origin, {
    action: 'enrollment.requested',
    scopes: command.scopes ?? [],
    metadata: command.metadata,
    details: { enrollment_id: row.id, name: row.name, public_key_fingerprint: row.fingerprint, ...why },
  })
}

/** Nodes that admit by one policy at once stand in each other's way so often before it is left to the administrator. */
const TRIES = 5
const BUSY = 'Too many ask at once for what the policy may give.'

/** Approves at once, or says why an administrator must look at it. */
async function admit(
  core: Parts,
  row: Enrollment,
  { policy, scopes, lifetimeMs }: Approval,
  command: EnrollCommand,
  origin: Origin,
): Promise<Enrollment | string> {
  let turn = await admissionTurn(core, policy)
  const bound = await boundsNote(core, policy, 'take')
  if (bound !== undefined) return bound
  const made = await prepareAdmitted(core, row, scopes, lifetimeMs, policy.name)
  if (made instanceof Problem) return made.message
  for (let attempt = 1; ; attempt += 1) {
    const approved = approvedBy(core, row, made, policy.name, lifetimeMs)
    const outcome = await commit(core, [
      ...turn,
      ...admitted(core, approved, made, policy.name, command, origin),
    ])
    if (outcome.done) return approved
    if (outcome.step >= turn.length || attempt === TRIES) return outcome.step < turn.length ? BUSY : TAKEN
    turn = await admissionTurn(core, policy)
    const full = await fullNote(core, policy)
    if (full !== undefined) return full
  }
}

function approvedBy(
  core: Parts,
  row: Enrollment,
  made: CreatedAgent,
  policy: string,
  lifetimeMs: number | undefined,
): Enrollment {
  const now = core.store.now()
  return {
    ...row,
    scopes: made.agent.scopes,
    status: 'approved',
    note: `Approved by the policy "${policy}".`,
    agent_id: made.agent.id,
    lifetime_ms: lifetimeMs ?? null,
    decided_at: now,
    decided_by: 'system',
    answer: core.sealer.seal('enrollments', row.id, 'answer', answerOf(made)),
    collect_until: now + COLLECT_MS,
  }
}

function admitted(
  core: Parts,
  row: Enrollment,
  { agent, steps }: CreatedAgent & { readonly steps: readonly Step[] },
  policy: string,
  command: EnrollCommand,
  origin: Origin,
): Step[] {
  const why = { enrollment_id: row.id, policy }
  const entry = (action: 'enrollment.approved' | 'agent.created', details: Record<string, unknown>) =>
    audit(core, undefined, origin, { action, agent, scopes: agent.scopes, details })
  return [
    ...steps,
    { op: 'insert', table: 'enrollments', row },
    requested(core, row, { policy }, command, origin),
    entry('enrollment.approved', why),
    entry('agent.created', { ...why, expires_at: agent.expires_at }),
  ]
}

async function prepareAdmitted(
  core: Parts,
  row: Enrollment,
  scopes: readonly string[],
  lifetimeMs: number | undefined,
  policy: string,
): Promise<Awaited<ReturnType<typeof prepareAgent>> | Problem> {
  const publicJwk = JSON.parse(row.public_jwk ?? 'null') as Record<string, unknown>
  try {
    return await prepareAgent(core, {
      name: row.name,
      scopes,
      lifetimeMs,
      policy,
      publicJwk,
      createdBy: 'system',
    })
  } catch (error) {
    // A name that makes no signing e-mail, say: nothing that the anonymous caller is told.
    if (error instanceof Problem && error.status < 500) return error
    throw error
  }
}
