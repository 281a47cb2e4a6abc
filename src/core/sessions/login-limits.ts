import { LOGIN_FAILURES_PER_ADDRESS, LOGIN_FAILURES_PER_MINUTE, MINUTE_MS } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { networkOf } from '../network.ts'

type Parts = Pick<Core, 'rates' | 'store' | 'denials' | 'meter'>

/** A link, a passkey or an operator, by something that is no secret. */
type Subject = string

/** Throws `rate_limited` after too many failures. Call it before anything that costs more than this. */
export function requireLoginRate({ rates, store }: Parts, subject: Subject, address: string | null): void {
  const waits = bucketsOf(subject, address).map(({ key, count }) =>
    rates.wait(key, { count, perMs: MINUTE_MS }, store.now()),
  )
  const wait = Math.max(...waits)
  if (wait > 0)
    throw new Problem('rate_limited', {
      message: 'Too many failed logins; try again later.',
      retryAfterSeconds: wait,
    })
}

/** Counts and records one failure: a refused link, assertion or code. */
export function countFailure(
  core: Parts,
  subject: Subject,
  actor: Actor<Caller | undefined>,
  reason: string,
): void {
  for (const { key, count } of bucketsOf(subject, actor.origin.ipAddress))
    core.rates.take(key, { count, perMs: MINUTE_MS }, core.store.now())
  core.meter.authenticated('session', 'failed')
  core.denials.record(actor, { action: 'auth.failed', details: { reason } })
}

function bucketsOf(subject: Subject, address: string | null) {
  const network = networkOf(address)
  return [
    { key: `login failure|${subject}|${network}`, count: LOGIN_FAILURES_PER_MINUTE },
    { key: `login failures|${network}`, count: LOGIN_FAILURES_PER_ADDRESS },
  ]
}
