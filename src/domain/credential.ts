import type { HealthReason } from './backend-health.ts'

/** The states of a credential and the only transitions between them (ARCHITECTURE.md, the life of a credential). */
export const STATES = ['pending', 'active', 'failed', 'revoking', 'revoked', 'expired'] as const
export type State = (typeof STATES)[number]

export const TRANSITIONS = {
  pending: ['active', 'failed', 'revoking'],
  active: ['revoking', 'revoked', 'expired'],
  revoking: ['revoked', 'expired'],
  failed: [],
  /** Only for an issue that was settled as interrupted and then reached its upstream after all. */
  revoked: ['revoking'],
  expired: [],
} as const satisfies Record<State, readonly State[]>

/** How a credential ends upstream: not at all (there is no upstream), at once, or at the upstream's own expiry. */
export type Revocation = 'none' | 'exact' | 'expiry_only'

/** The record of one issue, without its secret. Times in epoch ms. */
export interface Credential {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  readonly backendUid: string
  /** The backend's name. */
  readonly backend: string
  /** The run that it ends with. */
  readonly runId: string | null
  /** As they were granted. */
  readonly scopes: readonly string[]
  readonly state: State
  readonly revocation: Revocation
  readonly ttlMs: number
  readonly createdAt: number
  readonly expiresAt: number
  /** Only where the upstream keeps it longer than `expiresAt`. */
  readonly upstreamExpiresAt: number | null
  /** When it left `active` (or `pending`), for any reason; the first time counts. */
  readonly endedAt: number | null
  readonly endReason: EndReason | null
  /** When the upstream was seen to be clean. */
  readonly settledAt: number | null
  /** When the sweeper must look at it next; null when nothing is left to do. */
  readonly dueAt: number | null
  /** Failed revocations in a row. */
  readonly attempts: number
  readonly stuckAt: number | null
  /** Keyed. */
  readonly secretHash: string | null
  /** What revoking needs, as sealed JSON; null where no answer of the upstream was ever seen. */
  readonly sealedHandle: string | null
  /** Why ending it upstream failed last. */
  readonly failure: HealthReason | null
}

/** The part of a credential that comes from the upstream's answer. */
export type Activation = Pick<Credential, 'expiresAt' | 'upstreamExpiresAt' | 'secretHash' | 'sealedHandle'>

export function mayBecome(from: State, to: State): boolean {
  return (TRANSITIONS[from] as readonly State[]).includes(to)
}

/** Why a credential ended. The reason decides which end state `revoking` leads to. */
export const END_REASONS = [
  'revoked',
  'expired',
  'agent_deleted',
  'agent_expired',
  'backend_deleted',
  'run_ended',
  'interrupted',
  'undelivered',
] as const
export type EndReason = (typeof END_REASONS)[number]

export function endState(reason: EndReason): 'revoked' | 'expired' {
  return reason === 'expired' ? 'expired' : 'revoked'
}

/** The status that callers see; the progress upstream is reported separately (`upstreamEnd`). */
export type Status = 'active' | 'expired' | 'revoked'

/** An `active` credential ends by the clock alone, whether or not the sweeper has reached it. */
export function statusAt(state: State, expiresAt: number, reason: EndReason | null, now: number): Status {
  switch (state) {
    case 'active':
      return expiresAt > now ? 'active' : 'expired'
    case 'pending':
    case 'failed':
    case 'revoked':
      return 'revoked'
    case 'expired':
      return 'expired'
    case 'revoking':
      return reason === 'expired' ? 'expired' : 'revoked'
    default: {
      const never: never = state
      return never
    }
  }
}
