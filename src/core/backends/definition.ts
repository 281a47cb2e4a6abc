import { redactConfig } from '../../backends/config-fields.ts'
import type { BackendDefinition, OpenBackend } from '../../backends/open-backends.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { parseRate } from '../../domain/policy.ts'
import type { Core } from '../context.ts'
import { openRotation, type RotationRecord } from './rotation-record.ts'

/** A backend as it is shown, its secrets not yet redacted. */
export type ConfiguredBackend = BackendDefinition & Pick<OpenBackend, 'kind'>

/** Opens the configuration. Leaves out one that cannot be opened, because it was changed or sealed under another key. */
export function definitionOf(
  { sealer }: Pick<Core, 'sealer'>,
  { allowedScopes, rate, maxActive, sealedConfig, sealedRotation, ...stored }: StoredBackend,
): BackendDefinition {
  const config = openStoredConfig({ sealer }, { uid: stored.uid, sealedConfig })
  return {
    ...stored,
    config,
    rotation: rotationOf(config, openRotation({ sealer }, { ...stored, sealedRotation })),
    allowedScopes: allowedScopes ?? undefined,
    rate: rate === null ? undefined : parseRate(rate),
    maxActive: maxActive ?? undefined,
  }
}

function rotationOf(
  config: BackendDefinition['config'],
  record: RotationRecord | undefined,
): BackendDefinition['rotation'] {
  if (config === undefined || record === undefined) return undefined
  const { id, since, stage, values } = record
  return { id, since, proposed: stage === 'proposed' ? { ...config, ...values } : undefined }
}

function openConfig(sealer: Core['sealer'], uid: string, sealed: string): BackendDefinition['config'] {
  try {
    return JSON.parse(sealer.open('backends', uid, 'config', sealed))
  } catch {
    // One backend must not hide the others. The registry reports it.
    return undefined
  }
}

/** Undefined where it cannot be opened; empty once it is erased. */
export function openStoredConfig(
  { sealer }: Pick<Core, 'sealer'>,
  { uid, sealedConfig }: Pick<StoredBackend, 'uid' | 'sealedConfig'>,
): BackendDefinition['config'] {
  return sealedConfig === null ? {} : openConfig(sealer, uid, sealedConfig)
}

export function sealConfig(core: Pick<Core, 'sealer'>, uid: string, config: Record<string, unknown>): string {
  return core.sealer.seal('backends', uid, 'config', JSON.stringify(config))
}

/** The configuration with `[redacted]` for every secret; empty if it cannot be opened. */
export function shownConfig({ kind, config }: ConfiguredBackend): Record<string, unknown> {
  return redactConfig(kind.config, config ?? {})
}
