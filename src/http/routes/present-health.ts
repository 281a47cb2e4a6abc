import type { HealthReport } from '../../core/backends/report-health.ts'
import type { Revocations } from '../../domain/backend.ts'
import { optional, timestamp } from './wire.ts'

export function presentHealth(
  report: Omit<HealthReport, 'breakers' | 'secretSince'> & Partial<HealthReport>,
) {
  const { state, lastSuccess, lastFailure, lastFailureReason, lastFailureDetail, breakers, secretSince } =
    report
  return {
    state,
    last_success: orNull(lastSuccess),
    last_failure: orNull(lastFailure),
    last_failure_reason: lastFailureReason ?? null,
    ...optional('last_failure_detail', lastFailureDetail),
    ...optional('breakers', breakers),
    ...optional('secret_since', secretSince === undefined ? undefined : timestamp(secretSince)),
  }
}

const orNull = (time: number | undefined) => (time === undefined ? null : timestamp(time))

/** The newest failed try to end a credential. */
export function presentFailure(failure: Revocations['lastFailure']) {
  return failure && { at: timestamp(failure.at), reason: failure.reason, credential_id: failure.credentialId }
}
