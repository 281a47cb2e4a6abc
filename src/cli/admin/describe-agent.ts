import type { Agent } from '../../client/wire.ts'
import { CliError } from '../frame/failure.ts'
import { listing } from '../frame/output.ts'
import { relative } from '../frame/times.ts'

export function describeAgent(agent: Agent, now: number): string {
  return listing({
    name: agent.name,
    id: agent.id,
    scopes: agent.scopes.join(', ') || '(none)',
    created: relative(agent.created_at, now),
    expires: relative(agent.expires_at ?? 'never', now),
    'last used': relative(agent.last_used ?? 'never', now),
    audiences: agent.audiences?.join(' '),
    description: agent.description,
    'old secrets end':
      agent.previous_secrets_until === undefined ? undefined : relative(agent.previous_secrets_until, now),
    policy: agent.policy ?? undefined,
  })
}

/** For the catch of a call about one agent. */
export function unknownAgent(error: unknown): never {
  if ((error as { code?: unknown }).code !== 'agent_not_found') throw error
  throw new CliError('agent_not_found', 'No such agent.', {
    hint: 'List them with `mayfly agent ls`.',
    cause: error,
  })
}
