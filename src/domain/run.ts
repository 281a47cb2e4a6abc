/** A piece of work of an agent: what is issued for it ends with it (ADR 0068). Times in epoch ms. */
export interface Run {
  readonly id: string
  readonly agentId: string
  readonly agentName: string
  /** What the agent says that it is for: hostile text. */
  readonly purpose: string | null
  /** How often it says that it still runs. */
  readonly heartbeatMs: number
  /** Rises as it ends. */
  readonly version: number
  readonly startedAt: number
  /** Only where the server limits how long a run lives. */
  readonly expiresAt: number | null
  readonly endedAt: number | null
  readonly reason: RunEndReason | null
  /** In the form of entries; null: nobody asked for it. */
  readonly endedBy: string | null
  /** The last beat of a run that has ended. */
  readonly lastBeat: number | null
  readonly ipAddress: string | null
  readonly userAgent: string | null
}

/** Why an agent ends its run itself. */
export const OWN_END_REASONS = ['completed', 'placeholder_misused'] as const
export type OwnEndReason = (typeof OWN_END_REASONS)[number]

export const RUN_END_REASONS = [
  ...OWN_END_REASONS,
  'missed_heartbeat',
  'ended_by',
  'agent_ended',
  'expired',
] as const
export type RunEndReason = (typeof RUN_END_REASONS)[number]

/** This many intervals after its last beat a run is dead. */
export const MISSED_BEATS = 3

/** When a run that beat last at `beatAt` is dead unless it beats again. */
export function deadAt(heartbeatMs: number, beatAt: number): number {
  return beatAt + MISSED_BEATS * heartbeatMs
}

/** Within this time a node makes a beat durable that it has accepted, and other nodes wait for it. */
export function writtenWithin(heartbeatMs: number): number {
  return heartbeatMs / 2
}

/** A run ends by the clock alone, whether or not the job has reached it. */
export function isRunning({ endedAt, expiresAt }: Run, now: number): boolean {
  return endedAt === null && (expiresAt === null || expiresAt > now)
}
