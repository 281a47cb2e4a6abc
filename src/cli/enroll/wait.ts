import { pause } from '../../client/abort.ts'
import { signCompact } from '../../client/assertion.ts'
import { type Client, MayflyError, UnreachableError } from '../../client/client.ts'
import type { EnrollmentPoll } from '../../client/wire.ts'
import { retryDelay } from '../../domain/retry-delay.ts'
import { CliError, EXIT, unexpectedReply } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { type EnrollmentAnswer, newAnswerKey } from './sealed-answer.ts'
import type { Submitted } from './underway.ts'

const SHORTEST_MS = 250
const LONGEST_MS = 60_000
const MINUTE_MS = 60_000

/** Returns the answer, or undefined while the enrollment is pending. Throws `CliError` if there will be none. */
export async function look(
  context: Context,
  client: Client,
  issuer: string,
  { private_jwk, enrollment: { id }, request: { name } }: Submitted,
): Promise<EnrollmentAnswer | undefined> {
  const key = await newAnswerKey()
  const proof = await signCompact(private_jwk, {
    aud: issuer,
    enr: id,
    iat: Math.floor(context.now() / 1_000),
    jti: crypto.randomUUID(),
    enc: key.publicJwk,
  })
  const seen = await client.enrollStatus(id, proof)
  if (seen.status === 'pending') return undefined
  if (seen.status !== 'approved' || seen.sealed === undefined) throw ended(seen, name)
  return await key.open(seen.sealed).catch((cause: unknown) => {
    throw new CliError('answer_unreadable', 'The answer of the server cannot be decrypted.', {
      hint: 'Run `mayfly enroll` again; if the error persists, tell the administrator.',
      cause,
    })
  })
}

/** The enrollment ended without an agent, so its record can go. */
export class EnrollmentEnded extends CliError {}

function ended({ status, reason }: EnrollmentPoll, name: string): CliError {
  if (status === 'rejected') {
    const words = reason === undefined || reason === '' ? '.' : `: ${reason}`
    return new EnrollmentEnded('enrollment_rejected', `The administrator rejected the enrollment${words}`, {
      exit: EXIT.refused,
      hint: 'Talk to the administrator, then run `mayfly enroll` to ask again.',
    })
  }
  if (status === 'expired')
    return new EnrollmentEnded('enrollment_expired', 'The enrollment has expired.', {
      hint: 'Run `mayfly enroll` again, and have it approved within a day.',
    })
  if (status !== 'approved') return unexpectedReply()
  return new EnrollmentEnded(
    'enrollment_collected',
    'The enrollment was approved, but its answer was delivered more than ten minutes ago.',
    { hint: `Have the administrator delete the agent ${name}, then run \`mayfly enroll\` again.` },
  )
}

export interface Waiting {
  /** Called before the first wait. */
  announce(): void
  /** Epoch milliseconds. */
  readonly until: number
  /** The hint for later if that time comes first. */
  readonly next: string
}

/**
 * Polls until the enrollment is decided. Waits for an unreachable server until the enrollment would have expired. Throws
 * `CliError` if it takes too long.
 */
export async function wait(
  context: Context,
  client: Client,
  issuer: string,
  submitted: Submitted,
  { announce, until, next: hint }: Waiting,
): Promise<EnrollmentAnswer> {
  const { expires_at, poll_ms } = submitted.enrollment
  const since = context.now()
  const every = Math.min(Math.max(poll_ms, SHORTEST_MS), LONGEST_MS)
  let failures = 0
  let isAnnounced = false
  for (;;) {
    let next = every
    try {
      const answer = await look(context, client, issuer, submitted)
      if (answer !== undefined) return answer
      if (failures > 0) context.out.note('It answers again.')
      failures = 0
      if (!isAnnounced) announce()
      isAnnounced = true
    } catch (error) {
      if (!isPassing(error) || context.now() > Date.parse(expires_at) + MINUTE_MS) throw error
      failures += 1
      if (failures === 1) context.out.note(`${(error as Error).message} Still waiting.`)
      next = Math.max(retryDelay(failures - 1, 1, every, LONGEST_MS / 2), retryAfterMs(error))
    }
    context.out.progress(`Waiting for the administrator: ${elapsed(context.now() - since)}`)
    const left = until - context.now()
    if (left <= 0) throw new CliError('enrollment_undecided', 'The enrollment is still pending.', { hint })
    await pause(Math.min(next, left), context.signal)
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof UnreachableError) return !error.reason.startsWith('tls_')
  return error instanceof MayflyError && (error.status >= 500 || error.status === 429 || error.status === 409)
}

const retryAfterMs = (error: unknown) =>
  error instanceof MayflyError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0

/** The server refuses a proof for two reasons: a wrong clock, or an unknown enrollment. */
export async function explained(context: Context, client: Client, error: unknown): Promise<unknown> {
  if (!(error instanceof MayflyError) || error.status !== 401) return error
  const date = (await client.call({ method: 'GET', path: '/health' })).header('date')
  const aheadMs = context.now() - Date.parse(date ?? '')
  if (Math.abs(aheadMs) >= MINUTE_MS - 2_000) {
    const which = aheadMs > 0 ? 'ahead of' : 'behind'
    return new CliError(
      'clock_wrong',
      `The clock of this machine is ${elapsed(Math.abs(aheadMs))} ${which} the server\u2019s.`,
      { exit: EXIT.unauthenticated, hint: 'Set the clock, then run `mayfly enroll` again: nothing is lost.' },
    )
  }
  return new CliError('enrollment_unknown', 'The server does not know this enrollment.', {
    exit: EXIT.unauthenticated,
    hint: 'Check the address. If it is right, ask again with `mayfly enroll --restart`.',
  })
}

function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  const parts = [hours > 0 ? `${hours} h` : '', minutes > 0 ? `${minutes} min` : '', `${seconds % 60} s`]
  return parts.filter((part) => part !== '').join(' ')
}
