import type { Action } from './actions.ts'

/** Who did it and from where. */
export interface AuditTrace {
  /** An agent's id, `operator:` and an e-mail address, `local` or `system`. */
  readonly actor: string
  readonly ipAddress: string | null
  readonly userAgent: string | null
  readonly authMethod: string | null
  readonly requestId: string | null
}

/** One entry as it is recorded. */
export interface AuditEntry extends AuditTrace {
  /** Body of the `aud_` identifier: time-ordered. */
  readonly id: string
  /** Epoch ms. */
  readonly at: number
  readonly action: Action
  readonly outcome: AuditOutcome
  readonly agentId: string | null
  readonly agentName: string | null
  readonly backend: string | null
  readonly credentialId: string | null
  readonly runId: string | null
  readonly scopes: readonly string[] | null
  readonly ttlMs: number | null
  readonly metadata: Readonly<Record<string, unknown>> | null
  readonly details: Readonly<Record<string, unknown>> | null
}

export type AuditOutcome = 'ok' | 'denied' | 'failed'
