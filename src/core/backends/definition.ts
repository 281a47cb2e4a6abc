import { redactConfig } from '../../backends/config-fields.ts'
import type { BackendDefinition, OpenBackend } from '../../backends/registry.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { parseRate } from '../../domain/policy.ts'
import type { Core } from '../context.ts'

/** A backend as it is shown, its secrets not yet redacted. */
export type ConfiguredBackend = BackendDefinition & Pick<OpenBackend, 'kind'>

/** Opens the configuration. One that cannot be opened, changed or sealed under another key, is left out. */
export function definitionOf(
  { sealer }: Pick<Core, 'sealer'>,
  { allowedScopes, rate, maxActive, sealedConfig, ...stored }: StoredBackend,
): BackendDefinition {
  return {
    ...stored,
    config: sealedConfig === null ? {} : openConfig(sealer, stored.uid, sealedConfig),
    allowedScopes: allowedScopes ?? undefined,
    rate: rate === null ? undefined : parseRate(rate),
    maxActive: maxActive ?? undefined,
  }
}

function openConfig(sealer: Core['sealer'], uid: string, sealed: string): BackendDefinition['config'] {
  try {
    return JSON.parse(sealer.open('backends', uid, 'config', sealed))
  } catch {
    // One backend must not hide the others. The registry reports it.
    return undefined
  }
}

export function sealConfig(core: Pick<Core, 'sealer'>, uid: string, config: Record<string, unknown>): string {
  return core.sealer.seal('backends', uid, 'config', JSON.stringify(config))
}

/** The configuration with `[redacted]` for every secret; empty if it cannot be opened. */
export function shownConfig({ kind, config }: ConfiguredBackend): Record<string, unknown> {
  return redactConfig(kind.config, config ?? {})
}
