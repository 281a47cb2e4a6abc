import Type from 'typebox'
import { misconfigured } from '../domain/backend-error.ts'
import { isScope } from '../domain/scope.ts'
import { defineKind } from './define-kind.ts'
import type { Kind } from './kind.ts'

/** Why a backend of a kind that this server does not have is broken. */
export function missingKind(type: string): string {
  return `This server has no kind "${type}": its plugin or recipe was removed, or the recipe is faulty. Add or repair it, or delete the backend.`
}

/**
 * Stands in for a missing kind, so that its backends are shown, and their credentials stay due until it is back. Nothing is known
 * about its configuration, which is therefore not shown.
 */
function createMissingKind(type: string): Kind {
  return defineKind({
    type,
    title: `${type} (missing)`,
    config: Type.Object({}, { additionalProperties: false }),
    revocation: 'exact',
    scopes: { valid: isScope, forms: [], help: missingKind(type) },
    open: () => Promise.reject(misconfigured(missingKind(type))),
  })
}

export interface KindSet {
  /** As of the latest `load`; the same object until one comes or goes. */
  current(): ReadonlyMap<string, Kind>
  load(): Promise<void>
  /** In place of those that stay. */
  replace(kinds: readonly Kind[]): void
  find(type: string): { readonly kind: Kind; readonly isMissing: boolean }
}

interface KindSetParts {
  /** Those that stay until a reload. */
  readonly kinds: readonly Kind[]
  /** Those of the plugins that are pinned now. */
  loadKinds?(): Promise<readonly Kind[]>
  onError(name: string, error: unknown): void
}

/**
 * A plugin stands in front of a kind of its name: it was added while there was none, and its backends hold its secrets, which a kind of
 * a newer Mayfly must not receive.
 */
export function createKindSet(parts: KindSetParts): KindSet {
  const byType = (all: readonly Kind[]) => new Map(all.map((kind) => [kind.type, kind] as const))
  let own = byType(parts.kinds)
  const missing = new Map<string, Kind>()
  let plugins: readonly Kind[] = []
  let kinds: ReadonlyMap<string, Kind> = own

  function standInFor(type: string): Kind {
    const kind = missing.get(type) ?? createMissingKind(type)
    missing.set(type, kind)
    return kind
  }

  return {
    current: () => kinds,
    async load() {
      const added = (await parts.loadKinds?.()) ?? []
      if (added.length === plugins.length && added.every((kind, at) => kind === plugins[at])) return
      plugins = added
      for (const { type } of added)
        if (own.has(type)) parts.onError(type, new Error('a plugin stands in front of a kind of its name'))
      kinds = new Map([...own, ...byType(added)])
    },
    replace(all) {
      own = byType(all)
      kinds = new Map([...own, ...byType(plugins)])
    },
    find: (type) => {
      const kind = kinds.get(type)
      return kind === undefined ? { kind: standInFor(type), isMissing: true } : { kind, isMissing: false }
    },
  }
}
