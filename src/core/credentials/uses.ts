import type { OpenBackend } from '../../backends/open-backends.ts'
import { mergeUses } from '../../domain/merge-uses.ts'
import { scopeHere } from '../../domain/scope.ts'
import type { Use } from '../../domain/use.ts'

/** Where and how a credential of this backend with these scopes, as they were granted, is used (ADR 0070). */
export function usesOf(backend: OpenBackend, scopes: readonly string[]): Use[] {
  const { kind, config, name, uses } = backend
  const relative = scopes.map((scope) => scopeHere(name, scope))
  const ofKind = config === undefined ? [] : (kind.uses?.(config, relative) ?? [])
  const merged = mergeUses(ofKind, uses)
  // The server itself sends its secrets to no other listener on loopback (ADR 0041).
  const listeners = [...(kind.serviceAccounts ?? []), config?.['local_user'] ?? ''].filter(isAccount)
  return listeners.length === 0 ? merged : merged.map((use) => withAccounts(use, listeners))
}

const isAccount = (value: unknown): value is string => typeof value === 'string' && value !== ''

function withAccounts(use: Use, listeners: readonly string[]): Use {
  return use.local ? { ...use, accounts: [...new Set([...listeners, ...(use.accounts ?? [])])] } : use
}
