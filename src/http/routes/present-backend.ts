import type { ConfiguredBackend } from '../../core/backends/definition.ts'
import { formatDuration } from '../../domain/duration.ts'
import { optional } from './wire.ts'

/** What every agent may see of a backend. */
export function presentBackend(backend: ConfiguredBackend) {
  const { kind, config } = backend
  // A backend that ends may have no configuration left.
  const own = backend.ending === null && config !== undefined ? kind.environmentFor?.(config) : undefined
  return {
    id: backend.name,
    type: backend.type,
    default_ttl: formatDuration(backend.defaultTtlMs),
    max_ttl: formatDuration(backend.maxTtlMs),
    ...optional('allowed_scopes', backend.allowedScopes),
    ...optional('description', backend.description),
    revocation: kind.revocation,
    ...optional('recovery', kind.recovery),
    ...optional('environment', own ?? kind.environment),
    scope_forms: [...kind.scopes.forms],
    ...optional('broken', config === undefined ? true : undefined),
  }
}
