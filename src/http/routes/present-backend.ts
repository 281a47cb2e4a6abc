import type { ConfiguredBackend } from '../../core/backends/definition.ts'
import { formatDuration } from '../../domain/duration.ts'
import { optional } from './wire.ts'

/** What every agent may see of a backend. */
export function presentBackend(backend: ConfiguredBackend) {
  return {
    id: backend.name,
    type: backend.type,
    default_ttl: formatDuration(backend.defaultTtlMs),
    max_ttl: formatDuration(backend.maxTtlMs),
    ...optional('allowed_scopes', backend.allowedScopes),
    ...optional('description', backend.description),
    revocation: backend.kind.revocation,
    ...optional('recovery', backend.kind.recovery),
    ...optional('environment', backend.kind.environment),
    scope_forms: [...backend.kind.scopes.forms],
    ...optional('broken', backend.config === undefined ? true : undefined),
  }
}
