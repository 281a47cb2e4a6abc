import type { AgentGrantRow, AgentRow } from '../store/schema/rows.ts'

/** Those of `grants` that have not run out, whether or not the job that drops them has been there. */
export function livingGrants(grants: readonly AgentGrantRow[], now: number): AgentGrantRow[] {
  return grants.filter((grant) => grant.expires_at === null || grant.expires_at > now)
}

/** All that an agent holds, its extra grants being `grants`; without repetition. */
export function heldScopes(row: Pick<AgentRow, 'scopes'>, grants: readonly AgentGrantRow[]): string[] {
  return [...new Set([row, ...grants].flatMap(({ scopes }) => readScopes(scopes)))]
}

/** What an agent may ask tokens for, beside what all may. */
export function readAudiences(row: Pick<AgentRow, 'audiences'> | undefined): string[] {
  return JSON.parse(row?.audiences ?? '[]') as string[]
}

export function readScopes(json: string): string[] {
  return JSON.parse(json) as string[]
}
