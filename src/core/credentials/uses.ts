import type { OpenBackend } from '../../backends/open-backends.ts'
import { mergeUses } from '../../domain/merge-uses.ts'
import { scopeHere } from '../../domain/scope.ts'
import type { Use } from '../../domain/use.ts'

/** Where and how a credential of this backend with these scopes, as they were granted, is used (ADR 0070). */
export function usesOf(backend: OpenBackend, scopes: readonly string[]): Use[] {
  const { kind, config, name, uses } = backend
  const relative = scopes.map((scope) => scopeHere(name, scope))
  const ofKind = config === undefined ? [] : (kind.uses?.(config, relative) ?? [])
  return mergeUses(ofKind, uses)
}
