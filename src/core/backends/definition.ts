import { redactConfig } from '../../backends/config-fields.ts'
import type { BackendDefinition, OpenBackend } from '../../backends/registry.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { parseRate } from '../../domain/policy.ts'
import type { Core } from '../context.ts'

/** A backend as it is shown, its secrets not yet redacted. */
export type ConfiguredBackend = BackendDefinition & Pick<OpenBackend, 'kind'>

/** Opens the configuration. Throws `SealError` when it was sealed under another master key. */
export function definitionOf(
  { sealer }: Pick<Core, 'sealer'>,
  { allowedScopes, rate, maxActive, sealedConfig, ...stored }: StoredBackend,
): BackendDefinition {
  return {
    ...stored,
    config:
      sealedConfig === null
        ? {}
        : (JSON.parse(sealer.open('backends', stored.uid, 'config', sealedConfig)) as Record<
            string,
            unknown
          >),
    allowedScopes: allowedScopes ?? undefined,
    rate: rate === null ? undefined : parseRate(rate),
    maxActive: maxActive ?? undefined,
  }
}

export function sealConfig(core: Pick<Core, 'sealer'>, uid: string, config: Record<string, unknown>): string {
  return core.sealer.seal('backends', uid, 'config', JSON.stringify(config))
}

/** The configuration with `[redacted]` for every secret. */
export function shownConfig({ kind, config }: ConfiguredBackend): Record<string, unknown> {
  return redactConfig(kind.config, config)
}
