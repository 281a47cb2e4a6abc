/** What a proxy tells of one request or connection of a run (ADR 0070). Times in epoch ms, by its clock. */
export interface RunRequest {
  readonly at: number
  readonly protocol: 'http' | 'postgres' | 'mysql' | 'redis' | 'tunnel'
  readonly method: string | null
  readonly authority: string
  /** The path with its ids replaced. */
  readonly path: string | null
  readonly status: number | null
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly durationMs: number
  readonly decision: Decision
  readonly reason: string | null
  readonly backend: string | null
  readonly credentialId: string | null
  /** The name of a placeholder. */
  readonly placeholder: string | null
  readonly redacted: number
}

export const DECISIONS = ['injected', 'forwarded', 'tunnelled', 'refused', 'misused'] as const
export type Decision = (typeof DECISIONS)[number]

/** Lines of one batch, and of a run: those beyond are counted. */
export const MAX_LINES = 200
export const MAX_LINES_OF_RUN = 1_000_000
/** Misused placeholders that are entries of the audit, of one batch. */
export const MAX_MISUSED_OF_BATCH = 20
/** How long after the end of a run its proxy may still tell of it. */
export const TOLD_AFTER_MS = 60_000

export function isRefused({ decision }: Pick<RunRequest, 'decision'>): boolean {
  return decision === 'refused' || decision === 'misused'
}

/** What is known of all requests of a run, also of those whose lines were not kept. */
export interface RequestCounts {
  readonly total: number
  readonly kept: number
  readonly refused: number
  readonly redacted: number
}
