/** The secret of a link, from the fragment of the address. It is then neither there nor in the history. */
export function takeLink(): string | undefined {
  const link = new URLSearchParams(location.hash.slice(1)).get('link')
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search)
  return link ?? undefined
}
