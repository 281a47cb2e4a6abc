import { FORGES } from './forges.ts'
import { MACHINES } from './machines.ts'
import { PIPELINES } from './pipelines.ts'
import type { Preset } from './preset.ts'

export const PRESETS: readonly Preset[] = [...FORGES, ...PIPELINES, ...MACHINES]
