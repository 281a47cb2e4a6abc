import { misconfigured, unsupported } from '../domain/backend-error.ts'
import { covers, isScope } from '../domain/scope.ts'

/** Whether a pattern is the name, or ends in `*` after what the name begins with. */
export function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}

/** The one name that the scopes come to. Throws `unsupported`: `none` for a scope without a name, `several` for no name or more. */
export function oneMatch(
  names: readonly string[],
  scopes: readonly string[],
  { none, several }: { readonly none: string; readonly several: string },
): string {
  const found = scopes.map((scope) => names.filter((name) => matches(scope, name)))
  if (found.some((some) => some.length === 0)) throw unsupported(none)
  const [name, ...others] = new Set(found.flat())
  if (name !== undefined && others.length === 0) return name
  throw unsupported(several)
}

/** A scope of ours, and what it stands for at the upstream. */
export type NamedScope = readonly [name: string, theirs: string]

/** Configured scopes are `<name>`, the same at the upstream, or `<name>=<what it is there>`. */
export function readNamed(entries: readonly string[]): readonly NamedScope[] {
  return entries.map((entry) => {
    const [, name = entry, theirs = entry] = /^([^=]*)=(.*)$/.exec(entry) ?? []
    return [name, theirs]
  })
}

/** The configured scopes that a scope covers. */
export function givenBy(named: readonly NamedScope[], scope: string): readonly string[] {
  return named.filter(([name]) => covers(scope, name)).map(([, theirs]) => theirs)
}

/** Throws `BackendError` (`unsupported`) for a scope that is not well formed or gives nothing. */
export function requireGiven(named: readonly NamedScope[], scopes: readonly string[]): readonly string[] {
  const given = scopes.flatMap((scope) => {
    if (!isScope(scope)) throw unsupported('A scope is not well formed.')
    const theirs = givenBy(named, scope)
    if (theirs.length > 0) return theirs
    throw unsupported('This backend cannot give one of the scopes.')
  })
  return [...new Set(given)]
}

/** Throws `BackendError` (`misconfigured`) for entries whose names are no scopes, or that stand for what `theirs` refuses. */
export function requireNamed(field: string, entries: readonly string[], theirs: RegExp): void {
  for (const [name, text] of readNamed(entries)) {
    if (!isScope(name) || name.includes('*')) {
      throw misconfigured(`"${field}" contains a name that is not a scope of Mayfly.`)
    }
    if (!theirs.test(text)) {
      throw misconfigured(`"${field}" contains what the upstream does not permit.`)
    }
  }
}
