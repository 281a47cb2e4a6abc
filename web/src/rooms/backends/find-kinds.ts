import type { Kind } from '../../../../src/client/wire.ts'

/** Those whose name begins so come first. */
export function findKinds(kinds: readonly Kind[], text: string): readonly Kind[] {
  const wanted = text.trim().toLowerCase()
  const rank = ({ type, title, scopes }: Kind) => {
    const name = `${type} ${title}`.toLowerCase()
    if (name.startsWith(wanted) || title.toLowerCase().startsWith(wanted)) return 0
    if (name.includes(wanted)) return 1
    return scopes.forms.some(({ gives }) => gives.toLowerCase().includes(wanted)) ? 2 : 3
  }
  return kinds
    .map((kind) => ({ kind, at: rank(kind) }))
    .filter(({ at }) => at < 3)
    .sort((a, b) => a.at - b.at || a.kind.title.localeCompare(b.kind.title, 'en'))
    .map(({ kind }) => kind)
}
