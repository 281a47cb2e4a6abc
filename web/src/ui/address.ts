import { useLocation, useSearch } from 'wouter'

/** The filters of a page are its address, so that a link shows what its sender saw. */
export function useFilters<const N extends string>(names: readonly N[]) {
  const search = new URLSearchParams(useSearch())
  const [path, go] = useLocation()
  const filters = Object.fromEntries(names.map((name) => [name, search.get(name) || undefined])) as Record<
    N,
    string | undefined
  >
  /** Changes some filters and keeps the others; `undefined` and an empty text take one off. */
  const setFilters = (changes: Partial<Record<N, string | undefined>>): void => {
    const next = new URLSearchParams(search)
    for (const [name, value] of Object.entries(changes) as [N, string | undefined][]) {
      if (value === undefined || value === '') next.delete(name)
      else next.set(name, value)
    }
    const text = next.toString()
    go(text === '' ? path : `${path}?${text}`, { replace: true })
  }
  return [filters, setFilters] as const
}

/** The address with the present query, to open one object of a list and keep its filters. */
export function useKeepingQuery(): (path: string) => string {
  const search = useSearch()
  return (path) => (search === '' ? path : `${path}?${search}`)
}
