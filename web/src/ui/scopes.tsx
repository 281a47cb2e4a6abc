import { visible } from './hostile.ts'
import { Name } from './text.tsx'

const CHIP = 'rounded-sm border border-line bg-sunken px-1.5 font-mono text-xs leading-5'

/** Scopes as they are written everywhere. Long lists wrap. */
export function Scopes({
  scopes,
  none = 'none',
}: {
  readonly scopes: readonly string[]
  readonly none?: string
}) {
  if (scopes.length === 0) return <span className="text-muted">{none}</span>
  return (
    <ul className="flex flex-wrap gap-1">
      {scopes.map((scope) => (
        <li key={scope} dir="ltr" className={`${CHIP} [overflow-wrap:anywhere]`}>
          {visible(scope)}
        </li>
      ))}
    </ul>
  )
}

/** In a list: one line, cut by its column. */
export function ScopesLine({ scopes }: { readonly scopes: readonly string[] }) {
  if (scopes.length > 3) return <Name text={scopes.join('  ')} mono />
  if (scopes.length === 0) return <Scopes scopes={scopes} />
  return (
    <ul className="flex min-w-0 gap-1">
      {scopes.map((scope) => (
        <li key={scope} dir="ltr" title={visible(scope)} className={`${CHIP} min-w-0 truncate`}>
          {visible(scope)}
        </li>
      ))}
    </ul>
  )
}
