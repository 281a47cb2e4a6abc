import type { BackendDefinition } from '../../backends/registry.ts'
import { parseRate } from '../../domain/policy.ts'
import type { BackendRow } from '../../store/schema/rows.ts'
import type { Core } from '../context.ts'

/** A stored row with its configuration opened. Throws `SealError` when the master key is not the one it was sealed under. */
export function definitionOf(core: Pick<Core, 'sealer'>, row: BackendRow): BackendDefinition {
  return {
    uid: row.uid,
    name: row.name,
    type: row.type,
    version: row.version,
    config:
      row.config === null
        ? {}
        : (JSON.parse(core.sealer.open('backends', row.uid, 'config', row.config)) as Record<
            string,
            unknown
          >),
    defaultTtlMs: row.default_ttl_ms,
    maxTtlMs: row.max_ttl_ms,
    allowedScopes: row.allowed_scopes === null ? undefined : (JSON.parse(row.allowed_scopes) as string[]),
    description: row.description,
    rate: row.rate === null ? undefined : parseRate(row.rate),
    maxActive: row.max_active ?? undefined,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  }
}

export function sealConfig(core: Pick<Core, 'sealer'>, uid: string, config: Record<string, unknown>): string {
  return core.sealer.seal('backends', uid, 'config', JSON.stringify(config))
}
