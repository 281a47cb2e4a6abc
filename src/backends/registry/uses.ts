import type { HttpUse } from '../../domain/use.ts'
import { httpUse, READING, rules } from '../uses.ts'
import { accessOf, gives, isRegistryScope } from './scopes.ts'

interface Settings {
  readonly address: string
  readonly repositories?: readonly string[]
  readonly local: boolean
  readonly ca?: string
}

/** What the end of a path is in which repositories (OCI Distribution Specification 1.1, "Endpoints"). */
const PARTS = ['/manifests/*', '/blobs/**', '/tags/list', '/referrers/*']
const OF_ACTION: Readonly<Record<string, readonly string[]>> = {
  pull: READING,
  push: ['POST', 'PUT', 'PATCH'],
  delete: ['DELETE'],
}

/**
 * The registry itself, with the token. Its realm is Mayfly, which no proxy reaches: programs must send the token at once, as docker
 * does with `registrytoken`.
 */
export function usesOf(
  { address, repositories, local, ca }: Settings,
  scopes: readonly string[],
): readonly HttpUse[] {
  const known = scopes.filter((scope) => isRegistryScope(scope) && gives(repositories, scope))
  const access = accessOf(repositories, known)
  return httpUse(
    'registry',
    { base: address, local, ca },
    {
      places: [{ field: 'token', in: 'header', name: 'authorization' }],
      allow: [
        ...rules(READING, ['/v2/', '/v2']),
        ...access.flatMap(({ name, actions }) =>
          rules(
            actions.flatMap((action) => OF_ACTION[action] ?? []),
            PARTS.map((part) => `/v2/${name}${part}`),
          ),
        ),
      ],
    },
  )
}
