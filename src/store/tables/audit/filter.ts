/** The conditions of an audit query; an entry must match each given one. */
export interface AuditFilter {
  agentId?: string | undefined
  /** Who did it: an agent's id, `local` or `system`. */
  actor?: string | undefined
  backend?: string | undefined
  action?: string | undefined
  credentialId?: string | undefined
  runId?: string | undefined
  /** Id bodies: `from` inclusive, `before` exclusive. */
  from?: string | undefined
  before?: string | undefined
}
