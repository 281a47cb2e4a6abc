import type { listBackends } from '../../core/backends/list-backends.ts'
import { formatDuration } from '../../domain/duration.ts'
import { optional } from './wire.ts'

type Shown = Awaited<ReturnType<typeof listBackends>>[number]

/** What anybody may know of a backend. */
export function presentBackend(backend: Shown) {
  return {
    id: backend.name,
    type: backend.type,
    default_ttl: formatDuration(backend.defaultTtlMs),
    max_ttl: formatDuration(backend.maxTtlMs),
    ...optional('allowed_scopes', backend.allowedScopes),
    ...optional('description', backend.description),
    revocation: backend.kind.revocation,
  }
}
