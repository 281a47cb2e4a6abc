/** What an audit query asks for; every given part must match. */
export interface AuditFilter {
  agentId?: string | undefined
  /** Who did it: an agent's id, `local` or `system`. */
  actor?: string | undefined
  backend?: string | undefined
  action?: string | undefined
  credentialId?: string | undefined
  /** Id bodies: from this one on, and before that one. */
  from?: string | undefined
  before?: string | undefined
}
