import type { Agent, AgentGrant } from '../domain/agent.ts'

/** The grants that have not expired, whether or not the job that drops them has run. */
export function livingGrants(grants: readonly AgentGrant[], now: number): AgentGrant[] {
  return grants.filter((grant) => grant.expiresAt === null || grant.expiresAt > now)
}

/** All scopes of an agent with these extra grants, without repetition. */
export function heldScopes(agent: Pick<Agent, 'scopes'>, grants: readonly AgentGrant[]): string[] {
  return [...new Set([agent, ...grants].flatMap(({ scopes }) => scopes))]
}
