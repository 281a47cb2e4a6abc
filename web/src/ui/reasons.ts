import type { HealthReason } from '../../../src/client/wire.ts'

/** What a closed reason of a failing upstream means to a person, as the end of "the upstream…". */
const REASONS: Readonly<Record<HealthReason, string>> = {
  timeout: 'did not answer in time',
  refused: 'is not there: nothing listens at its address',
  unreachable: 'cannot be reached: its name has no address, or the connection failed',
  tls: 'has a certificate that is not trusted, or does not speak TLS',
  login_failed: 'does not accept Mayfly’s login',
  permission_missing: 'does not let Mayfly do what it must: a permission is missing',
  rate_limited: 'has had too many requests',
  unavailable: 'says that it cannot serve now',
  bad_answer: 'gave an answer that cannot be understood',
  misconfigured: 'does not fit the configuration, or the configuration cannot be opened',
  failed: 'failed; the log of the server has the details',
}

/** "The upstream does not accept Mayfly’s login." A newer server may know more reasons. */
export function reasonText(reason: string): string {
  return `The upstream ${(REASONS as Readonly<Record<string, string>>)[reason] ?? `failed: ${reason}`}.`
}
