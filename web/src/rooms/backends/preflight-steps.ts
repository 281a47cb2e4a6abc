import { MayflyError } from '../../../../src/client/errors.ts'
import type { HealthReason } from '../../../../src/client/wire.ts'

/** What the server does before it stores a backend. */
export const STEPS = [
  'Reads the configuration',
  'Reaches the upstream',
  'Logs in there',
  'Looks for what issuing needs',
  'Stores it',
] as const

const AT: Readonly<Record<HealthReason, number>> = {
  misconfigured: 0,
  refused: 1,
  unreachable: 1,
  tls: 1,
  timeout: 1,
  unavailable: 1,
  login_failed: 2,
  rate_limited: 3,
  permission_missing: 3,
  bad_answer: 3,
  failed: 3,
}

/** The step that failed; undefined: the answer does not say. */
export function failedAt(error: unknown): number | undefined {
  if (!(error instanceof MayflyError) || error.reason === undefined) return undefined
  return AT[error.reason]
}
