/** The states of a credential and the allowed transitions (ARCHITECTURE.md, the life of a credential). */
export const STATES = ['pending', 'active', 'failed', 'revoking', 'revoked', 'expired'] as const
export type State = (typeof STATES)[number]

export const TRANSITIONS = {
  pending: ['active', 'failed', 'revoking'],
  active: ['revoking', 'revoked', 'expired'],
  revoking: ['revoked', 'expired'],
  failed: [],
  /** Only if an issue that was settled as interrupted succeeded upstream after all. */
  revoked: ['revoking'],
  expired: [],
} as const satisfies Record<State, readonly State[]>

export function mayBecome(from: State, to: State): boolean {
  return (TRANSITIONS[from] as readonly State[]).includes(to)
}

/** Why a credential left `active`. Decides the end state after `revoking`. */
export const END_REASONS = [
  'revoked',
  'expired',
  'agent_deleted',
  'agent_expired',
  'backend_deleted',
  'interrupted',
  'undelivered',
] as const
export type EndReason = (typeof END_REASONS)[number]

export function endState(reason: EndReason): 'revoked' | 'expired' {
  return reason === 'expired' ? 'expired' : 'revoked'
}

/** The status that callers see; `upstreamEnd` tells how far its upstream is. */
export type Status = 'active' | 'expired' | 'revoked'

/** `active` ends by the clock alone, even before the sweeper runs. */
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

/** Full jitter: a whole number of ms up to `base × 2^attempts`, capped. `random` is in [0, 1). */
export function retryDelay(attempts: number, random: number, baseMs: number, capMs: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempts, 30))
  return Math.max(1, Math.floor(random * ceiling))
}
