import type { Issuance } from './issued-credentials.ts'

/** What a command gets through a proxy, which keeps it valid as long as the command runs. */
export function asIssuance(credential: Issuance['credential']): Issuance {
  return { credential, askedAt: 0, endsAt: Number.POSITIVE_INFINITY }
}
