import { isId } from '../../domain/ids.ts'
import { ANSWER_MS, MINUTE_MS, POLLS_PER_MINUTE } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { VerifiedProof } from '../../keys/proofs.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Origin } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'
import { type Enrollment, type EnrollmentStatus, statusOf } from './pending-enrollment.ts'

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

type Parts = Pick<Core, 'store' | 'ids' | 'keys' | 'sealer' | 'settings' | 'denials' | 'rates'>

const TRIES = 3

/**
 * How an enrollment stands, for the holder of its key alone. Once approved, the answer comes with it: again
 * for ten minutes after the first time, so that a lost reply loses nothing. Each proof is good once. Throws
 * `unauthorized`, the same for an unknown id and for any fault of the proof, and `rate_limited`.
 */
export async function pickUpEnrollment(
  core: Parts,
  command: PickUpCommand,
  origin: Origin,
): Promise<PickedUp> {
  const proof = await prove(core, command)
  if (proof === undefined) throw refuse(core, origin)
  const rate = { count: POLLS_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'This enrollment is being polled too often.'
  takeOrRefuse(core.rates, `poll|${command.id}`, rate, core.store.now(), message)
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const found = await pickUpOnce(core, command.id, proof, origin)
    if (found !== undefined) return found
  }
  throw new Problem('conflict', { message: 'The enrollment is being changed; try again.' })
}

async function prove(core: Parts, { id, proof }: PickUpCommand): Promise<VerifiedProof | undefined> {
  if (proof === undefined || !isId('enrollment', id)) return undefined
  const row = await core.store.enrollments.find(id)
  if (row === undefined || row.public_jwk === null) return undefined
  return core.keys.verifyEnrollmentProof(proof, JSON.parse(row.public_jwk), {
    issuer: core.settings.issuer,
    enrollmentId: id,
    now: core.store.now(),
  })
}

function refuse(core: Parts, origin: Origin): Problem {
  core.denials.record(undefined, origin, { action: 'auth.failed', details: { reason: 'enrollment_proof' } })
  return new Problem('unauthorized', { message: 'This needs a fresh proof of the enrolled key.' })
}

/** Undefined: the enrollment changed meanwhile, and nothing was kept, the use of the proof included. */
async function pickUpOnce(
  core: Parts,
  id: string,
  proof: VerifiedProof,
  origin: Origin,
): Promise<PickedUp | undefined> {
  const row = await core.store.enrollments.find(id)
  if (row === undefined) throw refuse(core, origin)
  const now = core.store.now()
  const used: Step = {
    op: 'insert',
    table: 'used_proofs',
    row: { id: `enrollment|${id}|${proof.jti}`, expires_at: proof.rememberUntil },
  }
  const status = await liveStatus(core, row, now)
  const answer = status === 'approved' ? openAnswer(core, row, now) : undefined
  // Sealed before it counts as collected: should sealing fail, nothing has begun to run out.
  const sealed = answer === undefined ? undefined : await core.keys.sealAnswer(answer, proof.enc)
  const change = [used, ...(sealed === undefined ? [] : collected(core, row, now, origin))]
  const outcome = await commit(core, change, sealed === undefined ? {} : { code: 'audit_unavailable' })
  if (outcome.done) return { enrollment: row, status, sealed }
  if (outcome.step === 0) throw refuse(core, origin)
  return undefined
}

/** An approved agent may have been deleted, or run out, before anybody came for it. */
async function liveStatus(core: Parts, row: Enrollment, now: number): Promise<EnrollmentStatus> {
  const status = statusOf(row, now)
  if (status !== 'approved' || row.collected_at !== null || row.agent_id === null) return status
  return (await core.store.agents.findLiving(row.agent_id)) === undefined ? 'expired' : status
}

function openAnswer(core: Parts, row: Enrollment, now: number): object | undefined {
  if (row.answer === null || (row.erase_at !== null && row.erase_at <= now)) return undefined
  return JSON.parse(core.sealer.open('enrollments', row.id, 'answer', row.answer)) as object
}

/** Every handing over is recorded; the first one starts the ten minutes. */
function collected(core: Parts, row: Enrollment, now: number, origin: Origin): Step[] {
  const entry = audit(core, undefined, origin, {
    action: 'enrollment.collected',
    agent: { id: row.agent_id ?? '', name: row.name },
    scopes: row.scopes,
    details: { enrollment_id: row.id, again: row.collected_at !== null },
  })
  if (row.collected_at !== null) return [entry]
  return [core.store.enrollments.collect(row.id, now, now + ANSWER_MS), entry]
}
