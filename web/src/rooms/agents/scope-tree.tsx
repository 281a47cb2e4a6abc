import { Link } from 'wouter'
import { paths } from '../../paths.ts'
import { visible } from '../../ui/hostile.ts'
import { type Branch, treeOf } from './scope-tree.ts'

/** What an agent may do, by backend. */
export function ScopeTree({ scopes }: { readonly scopes: readonly string[] }) {
  if (scopes.length === 0) return <p className="text-muted">None: it can do nothing yet.</p>
  return (
    <ul className="grid gap-2">
      {treeOf(scopes).map(({ part, scope, below }) => (
        <li key={part}>
          <BackendName name={part} />
          {scope !== undefined && <span className="ml-2 text-xs text-muted">everything of it</span>}
          {below.length > 0 && <Below branches={below} />}
        </li>
      ))}
    </ul>
  )
}

/** A pattern is no backend, and `admin` is Mayfly itself. */
function BackendName({ name }: { readonly name: string }) {
  if (name === 'admin') return <span className="font-medium text-wait">admin, of Mayfly itself</span>
  if (name.includes('*')) return <code>{visible(name)}</code>
  return (
    <Link className="font-medium text-accent underline" href={paths.backend(name)}>
      {visible(name)}
    </Link>
  )
}

function Below({ branches }: { readonly branches: readonly Branch[] }) {
  return (
    <ul className="ml-1 grid gap-0.5 border-l border-line pl-3">
      {branches.map(({ part, scope, below }) => (
        <li key={part}>
          <code
            dir="ltr"
            title={scope}
            className={`[overflow-wrap:anywhere] ${scope === undefined ? 'text-muted' : ''}`}
          >
            {visible(part)}
          </code>
          {below.length > 0 && <Below branches={below} />}
        </li>
      ))}
    </ul>
  )
}
