import type { HttpUse } from '../../domain/use.ts'
import { AUTHORIZATION, httpUse, READING, rules } from '../uses.ts'

/** What a workspace works with. Vaults hold the credentials of agents, and `organizations` is the administration. */
const RESOURCES = ['messages', 'files', 'skills', 'agents', 'sessions', 'environments', 'memory_stores']

interface Settings {
  readonly base_url: string
  readonly local: boolean
}

/** "API reference", and the resources of the SDK. The API changes things by POST. */
export function usesOf({ base_url: base, local }: Settings, scopes: readonly string[]): readonly HttpUse[] {
  if (scopes.length === 0) return []
  return httpUse(
    'api',
    { base, local },
    {
      places: [AUTHORIZATION, { in: 'header', name: 'x-api-key' }],
      allow: [
        ...rules(
          [...READING, 'POST', 'DELETE'],
          RESOURCES.map((name) => `/v1/${name}/**`),
        ),
        ...rules(READING, ['/v1/models/**']),
        ...rules(['POST'], ['/v1/complete']),
      ],
      // Who takes work for an environment gets a secret with it.
      deny: rules(['*'], ['/v1/environments/*/work/**']),
    },
  )
}
