import { type Enrollment, type EnrollmentStatus, enrollmentStatusAt } from '../../domain/enrollment.ts'
import { isId } from '../../domain/ids.ts'
import { ANSWER_MS, MINUTE_MS, POLLS_PER_MINUTE } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { VerifiedProof } from '../../keys/proofs.ts'
import { sealAnswer, verifyEnrollmentProof } from '../../keys/proofs.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'

export interface PickUpCommand {
  readonly id: string
  /** The header `Enrollment-Proof`: a compact JWS by the enrolled key. */
  readonly proof: string | undefined
}

export interface PickedUp {
  readonly enrollment: Enrollment
  readonly status: EnrollmentStatus
  /** A compact JWE to the key of the proof. */
  readonly sealed: string | undefined
}

const TRIES = 3

/**
 * The status of an enrollment, for the holder of its key alone. Once approved it comes with the answer, for ten minutes
 * after the first fetch, so that a lost reply loses nothing. Each proof is good once. Throws `rate_limited`, and
 * `unauthorized`, which is the same for an unknown id and for any fault of the proof.
 */
export async function pickUpEnrollment(
  core: Core,
  actor: Actor<undefined>,
  command: PickUpCommand,
): Promise<PickedUp> {
  const proof = await prove(core, command)
  if (proof === undefined) throw refuse(core, actor)
  const rate = { count: POLLS_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'This enrollment is polled too often.'
  takeOrRefuse(core.rates, `poll|${command.id}`, rate, core.store.now(), message)
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const found = await pickUpOnce(core, actor, command.id, proof)
    if (found !== undefined) return found
  }
  throw new Problem('conflict', { message: 'The enrollment was changed at the same time; try again.' })
}

async function prove(core: Core, { id, proof }: PickUpCommand): Promise<VerifiedProof | undefined> {
  if (proof === undefined || !isId('enrollment', id)) return undefined
  const publicJwk = (await core.store.enrollments.find(id))?.publicJwk
  if (publicJwk === undefined || publicJwk === null) return undefined
  return verifyEnrollmentProof(proof, publicJwk, {
    audiences: core.settings.issuerNames,
    enrollmentId: id,
    now: core.store.now(),
  })
}

function refuse(core: Core, actor: Actor<undefined>): Problem {
  core.denials.record(actor, { action: 'auth.failed', details: { reason: 'enrollment_proof' } })
  return new Problem('unauthorized', { message: 'A fresh proof of the enrolled key is required.' })
}

/** Undefined: the enrollment changed at the same time, and nothing was stored, not even the use of the proof. */
async function pickUpOnce(
  core: Core,
  actor: Actor<undefined>,
  id: string,
  proof: VerifiedProof,
): Promise<PickedUp | undefined> {
  const enrollment = await core.store.enrollments.find(id)
  if (enrollment === undefined) throw refuse(core, actor)
  const now = core.store.now()
  const used = core.store.tokens.useProof(`enrollment|${id}|${proof.jti}`, proof.rememberUntil)
  const status = await liveStatus(core, enrollment, now)
  const answer = status === 'approved' ? openAnswer(core, enrollment, now) : undefined
  // Sealed before it counts as collected: if sealing fails, the ten minutes have not started.
  const sealed = answer === undefined ? undefined : await sealAnswer(answer, proof.enc)
  const change = [used, ...(sealed === undefined ? [] : collected(core, actor, enrollment, now))]
  const outcome = await commit(core, actor, change, sealed === undefined ? {} : { code: 'audit_unavailable' })
  if (outcome.done) return { enrollment, status, sealed }
  if (outcome.step === 0) throw refuse(core, actor)
  return undefined
}

/** An approved agent may have ended before anybody collected it. */
async function liveStatus(core: Core, enrollment: Enrollment, now: number): Promise<EnrollmentStatus> {
  const { agentId, collectedAt } = enrollment
  const status = enrollmentStatusAt(enrollment, now)
  if (status !== 'approved' || collectedAt !== null || agentId === null) return status
  return (await core.store.agents.findLiving(agentId)) === undefined ? 'expired' : status
}

function openAnswer(core: Core, enrollment: Enrollment, now: number): object | undefined {
  const { id, sealedAnswer, eraseAt } = enrollment
  if (sealedAnswer === null || (eraseAt !== null && eraseAt <= now)) return undefined
  return JSON.parse(core.sealer.open('enrollments', id, 'answer', sealedAnswer)) as object
}

/** Every fetch of the answer is recorded; the first one starts the ten minutes. */
function collected(core: Core, actor: Actor<undefined>, enrollment: Enrollment, now: number): Step[] {
  const { id, agentId, name, scopes, collectedAt } = enrollment
  const entry = audit(core, actor, {
    action: 'enrollment.collected',
    ...(agentId === null ? {} : { agent: { id: agentId, name } }),
    scopes,
    details: { enrollment_id: id, again: collectedAt !== null },
  })
  if (collectedAt !== null) return [entry]
  return [core.store.enrollments.collect(id, now, now + ANSWER_MS), entry]
}
