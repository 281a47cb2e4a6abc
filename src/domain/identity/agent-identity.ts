import type { Agent } from '../agent.ts'

/** What an agent without secrets came under, and what it is bound to. */
export interface AgentIdentity {
  readonly kind: 'identity' | 'platform'
  /** Of the entry. */
  readonly name: string
  readonly issuer: string
  readonly values: readonly string[]
}

/** Null for an agent that has secrets of its own. */
export function identityOf({
  identity,
  identityValues,
}: Pick<Agent, 'identity' | 'identityValues'>): AgentIdentity | null {
  if (identity === null) return null
  const colon = identity.indexOf(':')
  const [issuer = '', ...values] = identityValues ?? []
  return {
    kind: identity.slice(0, colon) === 'platform' ? 'platform' : 'identity',
    name: identity.slice(colon + 1),
    issuer,
    values,
  }
}
