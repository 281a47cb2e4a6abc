import type { ScopeForm } from '../backends/kind.ts'
import type { PluginDescription } from '../domain/plugin.ts'

/** What a plugin says of its kind, checked: plain JSON, as the store keeps it, so that a kind is known while no process runs. */
export interface Description extends PluginDescription {
  /** JSON Schema of an object without additional properties, with the marks of `backends/kind.ts`. */
  readonly config: Readonly<Record<string, unknown>>
  readonly params: Readonly<Record<string, unknown>>
  readonly limits: { readonly minTtlMs?: number; readonly maxTtlMs?: number; readonly why?: string }
  readonly revocation: 'exact' | 'expiry_only'
  readonly recovers: boolean
  readonly scopes: { readonly forms: readonly ScopeForm[]; readonly help: string }
  readonly environment: Readonly<Record<string, string>>
  /** The calls that it offers beyond those that every kind has. */
  readonly offers: readonly ('complete' | 'list' | 'keepUp' | 'retire' | 'rotation')[]
}
