/** `unknown`: it was neither used nor checked since this node started, or since its configuration changed. */
export const HEALTH_STATES = ['up', 'down', 'unknown'] as const
export type HealthState = (typeof HEALTH_STATES)[number]

/** Why a backend does not work, with what it means for an administrator. The set is closed: monitoring depends on it. */
export const HEALTH_REASONS = {
  timeout: 'It did not answer within `upstream_timeout`.',
  refused: 'Nothing listens at its address.',
  unreachable: 'Its name has no address, or the connection to it failed.',
  tls: 'Its certificate is not trusted, or the TLS handshake failed.',
  login_failed: "It does not accept Mayfly's login.",
  permission_missing: "It accepts Mayfly's login and refuses what issuing or revoking needs.",
  rate_limited: 'It has had too many requests.',
  unavailable: 'It answers that it cannot serve now.',
  bad_answer: 'Its answer cannot be understood.',
  misconfigured: 'The configuration of the backend does not fit it, or cannot be opened.',
  failed: 'Anything else; the log has the details.',
} as const
export type HealthReason = keyof typeof HEALTH_REASONS

/** What a node knows of a backend. Times in epoch ms. */
export interface BackendHealth {
  readonly state: HealthState
  readonly lastSuccess: number | undefined
  readonly lastFailure: number | undefined
  readonly lastFailureReason: HealthReason | undefined
  /** Words of the kind and of the upstream: for the log, the local host and holders of `admin:*`. */
  readonly lastFailureDetail: string | undefined
}
