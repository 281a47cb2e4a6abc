/** One part of scopes and what follows it: `orders` → `invoices` → `read`. */
export interface Branch {
  readonly part: string
  /** The scope that ends here; undefined: it only leads on. */
  readonly scope: string | undefined
  readonly below: readonly Branch[]
}

/** Scopes by backend, then by their parts, in the order of their names. What has one continuation is one line: `orders` → `invoices:read`. */
export function treeOf(scopes: readonly string[]): readonly Branch[] {
  const groups = Map.groupBy(new Set(scopes), (scope) => scope.split(':')[0] ?? '')
  return [...groups.entries()]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([part, own]) => branchOf(part, part, own))
}

function branchOf(part: string, path: string, scopes: readonly string[]): Branch {
  const rest = scopes.filter((scope) => scope !== path)
  const groups = Map.groupBy(rest, (scope) => scope.slice(path.length + 1).split(':')[0] ?? '')
  const below = [...groups.entries()]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([next, own]) => {
      const [only] = own
      return own.length === 1 && only !== undefined
        ? { part: only.slice(path.length + 1), scope: only, below: [] }
        : branchOf(next, `${path}:${next}`, own)
    })
  return { part, scope: scopes.includes(path) ? path : undefined, below }
}
